/* Command-line flags as tables. A flag is one line of a table: parsing, ranges, nearest names, help, the
   configuration file and run.json all read that line and nothing else. */
#ifndef CVY_CLI_FLAGS_H
#define CVY_CLI_FLAGS_H

#include "base/mem.h"
#include "base/text.h"
#include "base/vec.h"

#include <jansson.h>

enum flag_type {                /* field in the options struct            written as */
                 FLAG_TEXT,     /* const char *                           anything */
                 FLAG_INT,      /* int64_t                                42 */
                 FLAG_FLOAT,    /* double; NAN: not given                 0.1, finite */
                 FLAG_BYTES,    /* int64_t; 0: not given                  500M, 1.5G, 2Gi */
                 FLAG_SWITCH,   /* int: 1, 0, -1 not given                --x, --no-x */
                 FLAG_SIZE,     /* int64_t[2]: height, width              224 or 224x200 */
                 FLAG_SHAPE,    /* int64_t[3]: channels, height, width    3x32x32 */
                 FLAG_CHANNELS, /* struct flag_channels                   0.5,0.5,0.5 */
};

struct flag_channels {
    int n; /* 0: not given */
    float value[4];
};

struct flag_names {
    const char *name[64];
    size_t n;
};

struct flag {
    const char *name; /* without dashes */
    enum flag_type type;
    size_t offset; /* of the field in the options struct */
    const char *help;
    char letter;            /* -b; 0: none */
    const char *alias;      /* a second long name; NULL: none */
    const char *initial;    /* the default as text; NULL: not given */
    double min, max;        /* inclusive, of numbers; both 0: no limits */
    const char *value_name; /* in the help; NULL: by type */
    /* The names that a text flag takes, for help and nearest match; NULL: any text. */
    void (*choices)(struct flag_names *out);
    const char *word; /* of a whole number: a word that may stand in its place, which is 0; NULL: none */
    bool is_not_kept; /* run.json leaves it out */
    /* Of several processes: each may have its own value; of a path, so long as all give one or none does. */
    bool is_own, is_place;
};

struct flag_group {
    const char *title;
    const struct flag *flags;
    size_t n;
};

/* Zero-initialised but for the first two; released by flags_free. */
struct flag_values {
    void *options;                          /* the struct that the offsets refer to */
    const struct flag_group *const *groups; /* NULL-terminated */
    CVY_VEC(const struct flag *) given;     /* by the command line */
    CVY_VEC(const char *) rest;             /* arguments that are no flags */
    /* Has another command this flag? Then a configuration may hold it, to no effect. NULL: none has. */
    bool (*is_elsewhere)(const char *name);
    struct cvy_pool pool; /* owns texts that are not in argv */
};

/* Sets every field to its default, then to the configuration file's value (--config FILE), then to the command
   line's. CVY_ERR_USAGE names what is wrong, and the nearest flag or choice. */
cvy_status flags_parse(struct flag_values *values, int argc, char **argv);
void flags_free(struct flag_values *values);
/* The flag of this long name or alias; NULL: there is none. */
const struct flag *flags_find(const struct flag_values *values, const char *name);
bool flags_given(const struct flag_values *values, const char *name);

/* Sets one flag by its long name, as the command line would; marks it as given. `text` must live on. */
cvy_status flags_set(struct flag_values *values, const char *name, const char *text);
/* The field as text, such that flags_set gives the same value again; false when it has none. */
bool flags_print(const struct flag_values *values, const struct flag *flag, struct cvy_text *out);

/* A flag's value in a configuration, as flags_print would write it; false: it is none. */
bool flags_print_json(const json_t *json, struct cvy_text *out);

/* A line for each flag: what all processes of a run must have alike. */
void flags_print_common(const struct flag_values *values, struct cvy_text *out);

/* All groups, with titles, defaults, ranges and choices. */
void flags_help(const struct flag_group *const *groups, struct cvy_text *out);

/* The configuration: {"flags": {"batch-size": 64, …}}, or the inner object alone; what run.json holds. Sets all but
   the flags that were given. */
cvy_status flags_read_config(struct flag_values *values, const char *path);
/* json_load_file, to which a folder is an empty file: here it is an error that says so. */
json_t *flags_load_json(const char *path, json_error_t *error);
/* A new object of all fields that have a value, to be written with FLAGS_JSON; NULL without memory. */
enum { FLAGS_DIGITS = 15 }; /* a decimal number of so many digits reads back as the same double */
#define FLAGS_JSON (JSON_INDENT(2) | JSON_REAL_PRECISION(FLAGS_DIGITS))
json_t *flags_to_json(const struct flag_values *values);

#endif

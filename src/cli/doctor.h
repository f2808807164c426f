/* What the checks of `convoy doctor` share. A check looks at one thing and says one or more findings: good, worth a
   note, or bad, the last two with the command that mends it. */
#ifndef CVY_CLI_DOCTOR_H
#define CVY_CLI_DOCTOR_H

#include "cli/command.h"

enum doctor_state { DOCTOR_GOOD, DOCTOR_NOTE, DOCTOR_BAD, DOCTOR_N_STATES };

struct doctor_finding {
    const char *check;
    enum doctor_state state;
    const char *text, *mend; /* mend: a command or what else to do; NULL: nothing */
};

struct doctor {
    const struct options *options;
    const cvy_log_sink *log;
    const char *root; /* what stands before /proc, /sys and /dev; "": the system's own */
    const char *check;
    struct cvy_pool pool; /* owns the texts of findings */
    CVY_VEC(struct doctor_finding) findings;
    cvy_status status; /* the first finding that there was no memory for */
    json_t *measured;  /* an object: what was measured, and the numbers */

    /* what later checks and the recommendation go by; 0: not known */
    int64_t n_cores; /* that this process keeps busy */
    int64_t n_nodes; /* of memory */
    int64_t n_gpus;
    double memory; /* bytes that this process may still take */
};

struct doctor_check {
    const char *name;
    bool is_live;  /* asks this machine in other ways than by files: left out with --root */
    bool is_trial; /* starts or measures something: left out with --quick */
    void (*run)(struct doctor *d);
};

/* ---- doctor_note.c ---- */

/* Adds a finding of the present check. `mend` may be NULL, is copied. Local. */
void doctor_say(struct doctor *d, enum doctor_state state, const char *mend, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Keeps a number for --json: "cpu:0 memory GB/s". Local. */
void doctor_measured(struct doctor *d, const char *name, double value);
/* The beginning of a file below the root, what fits; false: there is none. Local. */
bool doctor_read(const struct doctor *d, const char *path, char *out, size_t n_bytes);
/* The first word of a small file as a number; `otherwise` where there is none. Local. */
int64_t doctor_number(const struct doctor *d, const char *path, int64_t otherwise);
/* What stands behind "key" and blanks or a colon at the beginning of a line of `text`; false: there is no such line.
   Local. */
bool doctor_field(const char *text, const char *key, char *out, size_t n_bytes);
/* Is `word` one of the words of a text with blanks? Local. */
bool doctor_has_word(const char *text, const char *word);
/* The path in front of which the root stands. Local. */
bool doctor_path(const struct doctor *d, const char *path, char *out, size_t n_bytes);
/* "1.5 GB", or "unlimited" for 0. Returns `out`. */
enum { DOCTOR_BYTES = 32 };
const char *doctor_bytes(char out[DOCTOR_BYTES], double n_bytes);

/* ---- doctor_fit.c ---- */

extern const struct doctor_check doctor_check_memory;
/* Prints, for the network, batch and devices that the flags name, what each strategy takes on a device and whether that
   fits. CVY_ERR_UNFIT: none does. Local. */
cvy_status doctor_fit(struct flag_values *values, struct doctor *d, const cvy_log_sink *log);

/* ---- doctor_speed.c ---- */

/* With --data: how fast the loader is, unless that is not to be tried. CVY_ERR_USAGE: the flags. Local. */
cvy_status doctor_load(struct flag_values *values, struct doctor *d);

/* ---- doctor_child.c ---- */

/* Runs a program of the PATH with its output, and that of what it starts, into `out`: what fits. Returns its exit
   code; -1: it could not be started, or a signal ended it; -2: it and its group were ended at the deadline. Local. */
int doctor_run_program(char *const *argv, double deadline_s, char *out, size_t n_bytes);

#endif

/* A subcommand: one file each, ending in its descriptor, and one line in commands.def. */
#ifndef CVY_CLI_COMMAND_H
#define CVY_CLI_COMMAND_H

#include "cli/options.h"

struct command {
    const char *name;                        /* a word, or two */
    const char *usage;                       /* what stands behind "convoy NAME" */
    const char *help;                        /* one line */
    const struct flag_group *const *groups;  /* NULL-terminated */
    void (*more_help)(struct cvy_text *out); /* behind the flags; NULL: nothing */
    bool is_collective; /* under mpirun its processes work together; else each by itself */
    /* The flags are parsed; values->options is a struct options. Prints results to stdout; errors are left to the
       caller. */
    cvy_status (*run)(struct flag_values *values, const cvy_log_sink *log);
};

const struct command *const *command_table(size_t *n);

/* Has any command this flag? */
bool command_has_flag(const char *name);
/* Refuses arguments that are no flags: for commands that take none. */
cvy_status command_no_rest(const struct flag_values *values);
/* Of a collective command, once its flags are known: `status` of all processes so far, then whether they have the same
   flags. CVY_ERR_LOST when another process failed, CVY_ERR_USAGE when they differ. Collective. */
cvy_status command_agree(const struct flag_values *values, cvy_status status);
/* Prints to stdout and frees an object of JSON; NULL (out of memory) is an error. */
cvy_status command_print_json(json_t *json);

/* eval, also as `train --test-only`. */
cvy_status eval_run(struct flag_values *values, const cvy_log_sink *log);

#endif

/* The run that --resume goes on with, as its run.json tells of it. */
#ifndef CVY_CLI_PAST_RUN_H
#define CVY_CLI_PAST_RUN_H

#include "cli/options.h"

/* Zero-initialised: there is none. */
struct past_run {
    struct cvy_text changes; /* "--lr 0.01 (was 0.05), …": what steps depend on and what was another then */
    bool is_finished;        /* run.json has a result */
};

/* Takes from the run.json of --resume DIR, or of --resume auto's --output-dir, the flags that neither the command line
   nor --config gives, and the output folder. Without --resume nothing. CVY_ERR_USAGE: what is missing. Local. */
cvy_status past_run_read(struct flag_values *values, struct past_run *out);
void past_run_free(struct past_run *past);

#endif

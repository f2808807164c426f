/* run.json: every flag of a run, such that `convoy train --config run.json` repeats it, with S and T as they were
   settled; what was settled besides; and, once it is over, the result. */
#ifndef CVY_CLI_RUN_FILE_H
#define CVY_CLI_RUN_FILE_H

#include "cli/flags.h"
#include "engine/trainer.h"

struct run_result {
    double images_per_s;
    uint64_t weights_hash;
};

/* Writes OUTPUT_DIR/run.json; `result` is NULL before the end. Nothing without an output folder. */
cvy_status run_file_write(struct flag_values *values, const struct cvy_trainer *trainer,
                          const struct run_result *result);

#endif

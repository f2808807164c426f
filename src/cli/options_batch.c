/* --batch-size auto. */
#include "cli/options.h"

#include "engine/largest_batch.h"

#include <stdio.h>

static const struct flag fitting_batch_flags[] = {
    FLAG("batch-size", INT, batch_size,
         "images of one step on all devices together; auto: as many as fit --device-memory, else most of the "
         "memory that is free",
         .letter = 'b', .initial = "32", .min = 1, .max = 1 << 24, .word = "auto"),
};
GROUP(fitting_batch, "Batch");

static double mb(int64_t n_bytes) { return (double)n_bytes / 1e6; }

static void print_reason(const struct cvy_largest_batch *found) {
    const char *of =
        found->is_given ? "--device-memory" : "a device's part of most of the memory that is free";
    printf("batch size %lld: it takes %.1f MB of %.1f MB a device (%s)", (long long)found->batch,
           mb(found->bytes), mb(found->limit), of);
    if (found->more)
        printf("; %lld would take %.1f MB\n", (long long)(found->batch + found->shards), mb(found->more));
    else
        printf("; there are no more images\n");
    fflush(stdout);
}

cvy_status options_fit_batch(struct flag_values *values, const cvy_log_sink *log) {
    enum { MOST = 1 << 24 }; /* as --batch-size */
    struct options *o = values->options;
    struct cvy_task_options task;
    struct cvy_largest_batch found;
    if (o->batch_size)
        return CVY_OK;
    CVY_TRY(options_task(values, CVY_TASK_TRAIN, log, &task));
    CVY_TRY(cvy_task_largest_batch(&task, MOST, &found));
    o->batch_size = found.batch;
    if (cvy_world_rank(o->world) == 0)
        print_reason(&found);
    return CVY_OK;
}

/* How fast a training step is, and where its time goes: one synthetic batch is trained on again and again, so loading
   is not part of it. */
#ifndef CVY_ENGINE_BENCH_H
#define CVY_ENGINE_BENCH_H

#include "base/vec.h"
#include "engine/session.h"
#include "engine/task.h"

#include <jansson.h>

/* Time of all steps and of all devices of this process, of an operator in a layer or of an instruction. */
struct cvy_bench_part {
    const char *what, *layer; /* layer: NULL of an instruction */
    double s;
};

struct cvy_bench_options {
    struct cvy_task_options task; /* data: NULL; what it leaves open is the model's own */
    int64_t steps;                /* that count; three more come first */
    bool has_trace;               /* keep every event */
};

struct cvy_bench { /* zero-initialised: closed */
    struct cvy_task task;
    char *data;            /* the spec of the synthetic images */
    int64_t steps, images; /* that count; of one step, all its batches together */
    double ready_s;        /* until the first step could begin */
    double *step_s;        /* of each step, shortest first */
    double *busy_s;        /* of each device of this process: not waiting for another */
    CVY_VEC(struct cvy_bench_part) parts;
    double kernel_s, device_s; /* of all devices of this process: in operators; all that there was */
    json_t *trace;             /* in the form of Chrome's trace viewer; NULL: not asked for */
};

/* Opens, runs all steps and sorts what they took. `bench` is zero-initialised; release it with cvy_bench_close also on
   failure. CVY_ERR_USAGE as cvy_task_open. Collective. */
cvy_status cvy_bench_run(struct cvy_bench *bench, const struct cvy_bench_options *options);
void cvy_bench_close(struct cvy_bench *bench);

/* The part p (0 to 1) of the steps is no longer than this. */
double cvy_bench_quantile(const struct cvy_bench *bench, double p);
/* The convolution that a part is, as --conv-algo names it, into *out; false: it is none, or one of which there is but
   one algorithm. */
bool cvy_bench_convolution(const struct cvy_bench *bench, const struct cvy_bench_part *part,
                           struct cvy_text *out);
/* Peak of this process's memory in bytes, as the system counts it; 0: it does not say. */
size_t cvy_peak_memory(void);

#endif

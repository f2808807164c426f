/* Launches of the plugin's own functions, as something in a stream. */
#include "fakecuda.h"

struct payload {
    struct cuda_launch launch;
    struct cuda_args args;
    struct cuda_segments segments;
};

static void run(void *payload) {
    struct payload *p = payload;
    p->launch.args = &p->args;
    p->launch.segments = &p->segments;
    fake_run_launch(&p->launch);
}

cudaError_t cuda_launch_now(cudaStream_t stream, const struct cuda_launch *launch) {
    struct payload payload = {.launch = *launch, .args = *launch->args};
    if (launch->segments)
        payload.segments = *launch->segments;
    return fake_enqueue(stream, launch->name, launch->ranges, launch->n_ranges, run, &payload,
                        sizeof payload);
}

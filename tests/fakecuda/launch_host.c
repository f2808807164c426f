/* The table of functions on the host: every body of functions/ as plain loops. */
#include "fakecuda.h"

#include "functions_all.h"

typedef void host_function(const struct cuda_launch *launch);

#define CUDA_MAP(name)                                          \
    static void name##_host(const struct cuda_launch *launch) { \
        for (int64_t i = 0; i < launch->n; i++)                 \
            name##_map(launch->args, i);                        \
    }
#define CUDA_FOLD(name)                                         \
    static void name##_host(const struct cuda_launch *launch) { \
        for (int64_t row = 0; row < launch->n; row++) {         \
            double sums[CUDA_FOLD_SUMS] = {0};                  \
            float rounded[CUDA_FOLD_SUMS];                      \
            for (int64_t k = 0; k < launch->row; k++) {         \
                float value[CUDA_FOLD_SUMS] = {0};              \
                name##_value(launch->args, row, k, value);      \
                for (int s = 0; s < CUDA_FOLD_SUMS; s++)        \
                    sums[s] += (double)value[s];                \
            }                                                   \
            for (int s = 0; s < CUDA_FOLD_SUMS; s++)            \
                rounded[s] = (float)sums[s];                    \
            name##_finish(launch->args, row, rounded);          \
        }                                                       \
    }
#include "functions.def"
#undef CUDA_MAP
#undef CUDA_FOLD

static host_function *const table[CUDA_N_FUNCTIONS] = {
#define CUDA_MAP(name) name##_host,
#define CUDA_FOLD(name) name##_host,
#include "functions.def"
#undef CUDA_MAP
#undef CUDA_FOLD
};

struct payload {
    struct cuda_launch launch;
    struct cuda_args args;
};

static void run(void *payload) {
    struct payload *p = payload;
    p->launch.args = &p->args;
    table[p->launch.function](&p->launch);
}

cudaError_t cuda_launch_now(cudaStream_t stream, const struct cuda_launch *launch) {
    const struct payload payload = {*launch, *launch->args};
    return fake_enqueue(stream, launch->name, launch->ranges, launch->n_ranges, run, &payload,
                        sizeof payload);
}

/* The table of functions on the host: every body of functions/ as plain loops. Folds are cut into the same chunks as on
   the device; within one, sums are in double precision. */
#include "fakecuda.h"

#include "norm.h"
#include "tree.h"

#include "functions_all.h"

typedef void host_function(const struct cuda_launch *launch);

static const struct cuda_team alone = {0, 1, NULL};

#define CUDA_MAP(name)                                          \
    static void name##_host(const struct cuda_launch *launch) { \
        for (int64_t i = 0; i < launch->n; i++)                 \
            name##_map(launch->args, i);                        \
    }

#define CUDA_QUADS(name, ...)                                                                           \
    static void name##_host(const struct cuda_launch *launch) {                                         \
        for (int64_t i = 0; i < launch->n; i += CUDA_QUAD)                                              \
            name##_quad(launch->args, i, launch->n - i < CUDA_QUAD ? (int)(launch->n - i) : CUDA_QUAD); \
    }

#define CUDA_UPDATE(name)                                                      \
    static void name##_host(const struct cuda_launch *launch) {                \
        for (int s = 0; s < launch->segments->n; s++) {                        \
            const struct cuda_segment *segment = &launch->segments->at[s];     \
            const struct cuda_args mine = cuda_args_of(launch->args, segment); \
            for (int64_t i = 0; i < segment->n; i++)                           \
                name##_map(&mine, i);                                          \
        }                                                                      \
    }

#define CUDA_ROWS(name)                                         \
    static void name##_host(const struct cuda_launch *launch) { \
        for (int64_t row = 0; row < launch->n; row++)           \
            name##_row(launch->args, row, alone);               \
    }

/* Chunk c of a row, which has the elements k to end - 1. */
#define EACH_CHUNK(f, c)                                          \
    for (int64_t c = 0, k = 0, end; c < (f).chunks; c++, k = end) \
        if (end = k + cuda_fold_elements(&(f), c), true)

#define CUDA_FOLD(name, ...)                                                              \
    static void name##_host(const struct cuda_launch *launch) {                           \
        const struct cuda_fold f = cuda_fold_of(launch->n, launch->row, launch->is_near); \
        for (int64_t row = 0; row < f.n; row++) {                                         \
            double sums[CUDA_FOLD_SUMS] = {0};                                            \
            EACH_CHUNK(f, c) {                                                            \
                memset(sums, 0, sizeof sums);                                             \
                for (int64_t i = k; i < end; i++) {                                       \
                    float value[CUDA_FOLD_SUMS] = {0};                                    \
                    name##_value(launch->args, row, i, value);                            \
                    for (int s = 0; s < CUDA_FOLD_SUMS; s++)                              \
                        sums[s] += (double)value[s];                                      \
                }                                                                         \
                for (int s = 0; s < CUDA_FOLD_SUMS && f.chunks > 1; s++)                  \
                    cuda_fold_partial(&f, launch->partial, row, c)[s] = (float)sums[s];   \
            }                                                                             \
            if (f.chunks > 1)                                                             \
                cuda_fold_join(&f, launch->partial, row, alone, sums);                    \
            name##_finish(launch->args, row, sums);                                       \
        }                                                                                 \
    }

#define CUDA_MOMENTS(name, ...)                                                           \
    static void name##_host(const struct cuda_launch *launch) {                           \
        const struct cuda_fold f = cuda_fold_of(launch->n, launch->row, launch->is_near); \
        for (int64_t row = 0; row < f.n; row++) {                                         \
            struct cuda_moments all = {0};                                                \
            EACH_CHUNK(f, c) {                                                            \
                all = (struct cuda_moments){(double)(end - k), 0, 0};                     \
                for (int64_t i = k; i < end; i++)                                         \
                    all.mean += (double)name##_element(launch->args, row, i) / all.n;     \
                for (int64_t i = k; i < end; i++) {                                       \
                    double d = (double)name##_element(launch->args, row, i) - all.mean;   \
                    all.m2 += d * d;                                                      \
                }                                                                         \
                if (f.chunks > 1) {                                                       \
                    float *to = cuda_fold_partial(&f, launch->partial, row, c);           \
                    to[0] = (float)all.mean;                                              \
                    to[1] = (float)all.m2;                                                \
                }                                                                         \
            }                                                                             \
            if (f.chunks > 1)                                                             \
                all = cuda_moments_join(&f, launch->partial, row, alone);                 \
            name##_finish(launch->args, row, &all);                                       \
        }                                                                                 \
    }
#include "functions.def"
#undef CUDA_MAP
#undef CUDA_QUADS
#undef CUDA_UPDATE
#undef CUDA_ROWS
#undef CUDA_FOLD
#undef CUDA_MOMENTS

static host_function *const table[CUDA_N_FUNCTIONS] = {
#define CUDA_MAP(name) name##_host,
#define CUDA_QUADS(name, ...) name##_host,
#define CUDA_UPDATE(name) name##_host,
#define CUDA_ROWS(name) name##_host,
#define CUDA_FOLD(name, ...) name##_host,
#define CUDA_MOMENTS(name, ...) name##_host,
#include "functions.def"
#undef CUDA_MAP
#undef CUDA_QUADS
#undef CUDA_UPDATE
#undef CUDA_ROWS
#undef CUDA_FOLD
#undef CUDA_MOMENTS
};

void fake_run_launch(const struct cuda_launch *launch) { table[launch->function](launch); }

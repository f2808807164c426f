/* Bodies of an activation NAME and of its gradient, from NAME_of(x) and NAME_slope(x or y): y = f(x), and
   dx = slope dy        in: dy, x or y */
#ifndef CONVOY_CUDA_ACTIVATION_H
#define CONVOY_CUDA_ACTIVATION_H

#include "functions.h"

#define ACTIVATION_BODIES(NAME)                                                                  \
    CUDA_BODY void NAME##_quad(const struct cuda_args *a, int64_t i, int n) {                    \
        struct cuda_quad_f32 x = cuda_load_quad(a, 0, i, n);                                     \
        for (int j = 0; j < CUDA_QUAD; j++)                                                      \
            x.at[j] = NAME##_of(x.at[j]);                                                        \
        cuda_store_quad(a, 0, i, n, x);                                                          \
    }                                                                                            \
    CUDA_BODY void NAME##_backward_quad(const struct cuda_args *a, int64_t i, int n) {           \
        struct cuda_quad_f32 dy = cuda_load_quad(a, 0, i, n), kept = cuda_load_quad(a, 1, i, n); \
        for (int j = 0; j < CUDA_QUAD; j++)                                                      \
            dy.at[j] *= NAME##_slope(kept.at[j]);                                                \
        cuda_store_quad(a, 0, i, n, dy);                                                         \
    }

#endif

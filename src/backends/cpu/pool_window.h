/* The window of one output position along one axis, for each kind of pooling. */
#ifndef CVY_CPU_POOL_WINDOW_H
#define CVY_CPU_POOL_WINDOW_H

#include <stdint.h>

struct cpu_window {
    int64_t first, end, step; /* positions within the image */
    int64_t divisor;          /* of an average: what this axis contributes */
};

/* Position `out` of n_out along axis 0 (height) or 1 (width), over `in` positions. */
typedef struct cpu_window cpu_window_rule(const void *attrs, int axis, int64_t in, int64_t n_out,
                                          int64_t out);
cpu_window_rule cpu_window_max, cpu_window_average; /* attrs: struct cvy_pool_attrs */
cpu_window_rule cpu_window_adaptive;                /* attrs: struct cvy_adaptive_pool_attrs */

#endif

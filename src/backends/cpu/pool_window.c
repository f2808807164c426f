/* The rules are the operators': see ops/max_pool.c, avg_pool.c, adaptive_avg_pool.c. */
#include "backends/cpu/pool_window.h"
#include "ops/pool.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Taps before the image are skipped whole: the first one within it is a multiple of the dilation away. */
struct cpu_window cpu_window_max(const void *attrs, int axis, int64_t in, int64_t n_out, int64_t out) {
    const struct cvy_pool_attrs *a = attrs;
    int64_t step = a->dilation[axis], first = out * cvy_pool_stride(a, axis) - a->padding[axis];
    int64_t end = first + (a->kernel[axis] - 1) * step + 1;
    (void)n_out;
    if (first < 0)
        first += (-first + step - 1) / step * step;
    return (struct cpu_window){.first = first, .end = smaller(end, in), .step = step, .divisor = 1};
}

/* What hangs over the padded end (ceil_mode) never counts; the padding does if asked. */
struct cpu_window cpu_window_average(const void *attrs, int axis, int64_t in, int64_t n_out, int64_t out) {
    const struct cvy_pool_attrs *a = attrs;
    int64_t first = out * cvy_pool_stride(a, axis) - a->padding[axis];
    int64_t end = smaller(first + a->kernel[axis], in + a->padding[axis]);
    struct cpu_window w = {.first = larger(first, 0), .end = smaller(end, in), .step = 1};
    (void)n_out;
    w.divisor = a->count_include_pad ? end - first : w.end - w.first;
    return w;
}

struct cpu_window cpu_window_adaptive(const void *attrs, int axis, int64_t in, int64_t n_out, int64_t out) {
    struct cpu_window w = {.first = out * in / n_out, .end = ((out + 1) * in + n_out - 1) / n_out, .step = 1};
    (void)attrs, (void)axis;
    w.divisor = w.end - w.first;
    return w;
}

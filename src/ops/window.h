/* The arithmetic of sliding windows along one axis, which convolution and pooling share. */
#ifndef CVY_OPS_WINDOW_H
#define CVY_OPS_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct cvy_window { /* one axis */
    int64_t in, kernel, stride, padding, dilation;
    bool ceil_mode;
};

/* Number of windows: floor or ceil of (in + 2 padding - dilation (kernel - 1) - 1) / stride, plus 1; with ceil,
   no window may start in the padding behind the end. 0 when not even one fits. */
int64_t cvy_window_count(const struct cvy_window *w);

/* Positions `out` for which tap k lies inside the input: out * stride - padding + k * dilation in [0, in). */
void cvy_window_range(const struct cvy_window *w, int64_t k, int64_t n_out, int64_t *first, int64_t *end);

#endif

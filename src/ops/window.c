/* Sliding windows along one axis. */
#include "ops/window.h"

int64_t cvy_window_count(const struct cvy_window *w) {
    int64_t room = w->in + 2 * w->padding - w->dilation * (w->kernel - 1) - 1;
    if (room < 0)
        return 0;
    int64_t n = (room + (w->ceil_mode ? w->stride - 1 : 0)) / w->stride + 1;
    return w->ceil_mode && (n - 1) * w->stride >= w->in + w->padding ? n - 1 : n;
}

void cvy_window_range(const struct cvy_window *w, int64_t k, int64_t n_out, int64_t *first, int64_t *end) {
    int64_t at = k * w->dilation - w->padding; /* position of the tap in window 0 */
    *first = at >= 0 ? 0 : (-at + w->stride - 1) / w->stride;
    *end = w->in > at ? (w->in - 1 - at) / w->stride + 1 : 0;
    *end = *end < n_out ? *end : n_out;
    *first = *first < *end ? *first : *end;
}

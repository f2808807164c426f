/* dx = the sum of dy, divided by its window's size, over the windows that hold this element, row by row of windows.
   dim: pool_window.h */
#include "pool_window.h"

CUDA_BODY void avg_pool_backward_map(const struct cuda_args *a, int64_t i) {
    const struct pool_place place = pool_place_of(a, i, a->dim[1], a->dim[2]);
    struct pool_span rows = pool_windows_at(a, 0, place.at[0]), columns = pool_windows_at(a, 1, place.at[1]);
    int64_t n_q = a->dim[4];
    float sum = 0;
    for (int64_t p = rows.first; p < rows.end; p++) {
        int64_t height = pool_window(a, 0, p).divisor;
        for (int64_t q = columns.first; q < columns.end; q++) {
            float dy = cuda_load(a, 0, pool_index(a, &place, a->dim[3] * n_q, p * n_q + q));
            sum += dy / (float)(height * pool_window(a, 1, q).divisor);
        }
    }
    cuda_store(a, 0, i, sum);
}

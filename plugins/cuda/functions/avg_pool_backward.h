/* dx = the sum of dy, divided by its window's size, over the windows that hold this element, row by row of windows.
   dim: pool_window.h */
#include "pool_window.h"

CUDA_BODY void avg_pool_backward_strip(const struct cuda_args *a, int64_t i, int lanes) {
    const struct pool_place place = pool_place_of(a, i, a->dim[1], a->dim[2]);
    struct pool_span rows = pool_windows_at(a, 0, place.at[0]), columns = pool_windows_at(a, 1, place.at[1]);
    int64_t n_q = a->dim[4];
    struct cuda_quad_f32 sum = {{0, 0, 0, 0}};
    for (int64_t p = rows.first; p < rows.end; p++) {
        int64_t height = pool_window(a, 0, p).divisor;
        for (int64_t q = columns.first; q < columns.end; q++) {
            float divisor = (float)(height * pool_window(a, 1, q).divisor);
            int64_t from = pool_index(a, &place, a->dim[3] * n_q, p * n_q + q);
            struct cuda_quad_f32 dy = cuda_load_quad(a, 0, from, lanes);
            for (int j = 0; j < CUDA_QUAD; j++)
                sum.at[j] += dy.at[j] / divisor;
        }
    }
    cuda_store_quad(a, 0, i, lanes, sum);
}

CUDA_BODY void avg_pool_backward_quad(const struct cuda_args *a, int64_t i, int n) {
    int lanes = pool_lanes(a, n);
    for (int j = 0; j < n; j += lanes)
        avg_pool_backward_strip(a, i + j, lanes);
}

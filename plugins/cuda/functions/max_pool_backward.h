/* dx = the sum of dy over the windows that this element won, row by row of windows.
   in: dy, index of the winner within its image; dim: pool_window.h */
#include "pool_window.h"

CUDA_BODY void max_pool_backward_map(const struct cuda_args *a, int64_t i) {
    const struct pool_place place = pool_place_of(a, i, a->dim[1], a->dim[2]);
    struct pool_span rows = pool_windows_at(a, 0, place.at[0]), columns = pool_windows_at(a, 1, place.at[1]);
    int64_t n_q = a->dim[4], mine = place.at[0] * a->dim[2] + place.at[1];
    float sum = 0;
    for (int64_t p = rows.first; p < rows.end; p++) {
        for (int64_t q = columns.first; q < columns.end; q++) {
            int64_t from = pool_index(a, &place, a->dim[3] * n_q, p * n_q + q);
            if (((const int32_t *)a->in[1])[from] == mine)
                sum += cuda_load(a, 0, from);
        }
    }
    cuda_store(a, 0, i, sum);
}

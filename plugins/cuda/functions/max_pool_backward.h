/* dx = the sum of dy over the windows that this element won, row by row of windows.
   in: dy, index of the winner within its image; dim: pool_window.h */
#include "pool_window.h"

CUDA_BODY struct pool_winners pool_winners_at(const struct cuda_args *a, int64_t i, int lanes) {
    const int32_t *index = (const int32_t *)a->in[1] + i;
    struct pool_winners one = {{index[0], -1, -1, -1}};
    return lanes == CUDA_QUAD ? *(const struct pool_winners *)index : one;
}

CUDA_BODY void max_pool_backward_strip(const struct cuda_args *a, int64_t i, int lanes) {
    const struct pool_place place = pool_place_of(a, i, a->dim[1], a->dim[2]);
    struct pool_span rows = pool_windows_at(a, 0, place.at[0]), columns = pool_windows_at(a, 1, place.at[1]);
    int64_t n_q = a->dim[4], mine = place.at[0] * a->dim[2] + place.at[1];
    struct cuda_quad_f32 sum = {{0, 0, 0, 0}};
    for (int64_t p = rows.first; p < rows.end; p++) {
        for (int64_t q = columns.first; q < columns.end; q++) {
            int64_t from = pool_index(a, &place, a->dim[3] * n_q, p * n_q + q);
            struct pool_winners winners = pool_winners_at(a, from, lanes);
            struct cuda_quad_f32 dy = cuda_load_quad(a, 0, from, lanes);
            for (int j = 0; j < CUDA_QUAD; j++)
                sum.at[j] += winners.at[j] == mine ? dy.at[j] : 0;
        }
    }
    cuda_store_quad(a, 0, i, lanes, sum);
}

CUDA_BODY void max_pool_backward_quad(const struct cuda_args *a, int64_t i, int n) {
    int lanes = pool_lanes(a, n);
    for (int j = 0; j < n; j += lanes)
        max_pool_backward_strip(a, i + j, lanes);
}

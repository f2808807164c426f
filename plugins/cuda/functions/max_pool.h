/* y = the largest x of the window: the first of equals, and NaN beats everything.
   out: y, index of the winner within its image (may be NULL); dim: pool_window.h */
#include "pool_window.h"

CUDA_BODY void max_pool_store(const struct cuda_args *a, int64_t i, int lanes, struct cuda_quad_f32 y,
                              struct pool_winners winners) {
    cuda_store_quad(a, 0, i, lanes, y);
    if (a->out[1] && lanes == CUDA_QUAD)
        *(struct pool_winners *)((int32_t *)a->out[1] + i) = winners;
    else if (a->out[1])
        ((int32_t *)a->out[1])[i] = winners.at[0];
}

CUDA_BODY void max_pool_strip(const struct cuda_args *a, int64_t i, int lanes) {
    const struct pool_place place = pool_place_of(a, i, a->dim[3], a->dim[4]);
    struct pool_span rows = pool_window(a, 0, place.at[0]), columns = pool_window(a, 1, place.at[1]);
    int64_t width = a->dim[2];
    struct cuda_quad_f32 largest = {{0, 0, 0, 0}};
    struct pool_winners winners = {{-1, -1, -1, -1}};
    for (int64_t r = rows.first; r < rows.end; r += rows.step) {
        for (int64_t c = columns.first; c < columns.end; c += columns.step) {
            int64_t pixel = r * width + c, from = pool_index(a, &place, a->dim[1] * width, pixel);
            struct cuda_quad_f32 x = cuda_load_quad(a, 0, from, lanes);
            for (int j = 0; j < CUDA_QUAD; j++) {
                bool is_first_nan = x.at[j] != x.at[j] && largest.at[j] == largest.at[j];
                if (winners.at[j] < 0 || x.at[j] > largest.at[j] || is_first_nan) {
                    largest.at[j] = x.at[j];
                    winners.at[j] = (int32_t)pixel;
                }
            }
        }
    }
    max_pool_store(a, i, lanes, largest, winners);
}

CUDA_BODY void max_pool_quad(const struct cuda_args *a, int64_t i, int n) {
    int lanes = pool_lanes(a, n);
    for (int j = 0; j < n; j += lanes)
        max_pool_strip(a, i + j, lanes);
}

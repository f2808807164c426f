/* y = the largest x of the window: the first of equals, and NaN beats everything.
   out: y, index of the winner within its image (may be NULL); dim: pool_window.h */
#include "pool_window.h"

CUDA_BODY void max_pool_map(const struct cuda_args *a, int64_t i) {
    const struct pool_place place = pool_place_of(a, i, a->dim[3], a->dim[4]);
    struct pool_span rows = pool_window(a, 0, place.at[0]), columns = pool_window(a, 1, place.at[1]);
    int64_t width = a->dim[2], best = -1;
    float largest = 0;
    for (int64_t r = rows.first; r < rows.end; r += rows.step) {
        for (int64_t c = columns.first; c < columns.end; c += columns.step) {
            float x = cuda_load(a, 0, pool_index(a, &place, a->dim[1] * width, r * width + c));
            if (best < 0 || x > largest || (x != x && largest == largest)) {
                best = r * width + c;
                largest = x;
            }
        }
    }
    cuda_store(a, 0, i, largest);
    if (a->out[1])
        ((int32_t *)a->out[1])[i] = (int32_t)best;
}

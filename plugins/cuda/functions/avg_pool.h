/* y = the sum of x over the window, divided by its size          dim: pool_window.h */
#include "pool_window.h"

CUDA_BODY void avg_pool_map(const struct cuda_args *a, int64_t i) {
    const struct pool_place place = pool_place_of(a, i, a->dim[3], a->dim[4]);
    struct pool_span rows = pool_window(a, 0, place.at[0]), columns = pool_window(a, 1, place.at[1]);
    int64_t width = a->dim[2];
    float sum = 0;
    for (int64_t r = rows.first; r < rows.end; r++) {
        for (int64_t c = columns.first; c < columns.end; c++)
            sum += cuda_load(a, 0, pool_index(a, &place, a->dim[1] * width, r * width + c));
    }
    cuda_store(a, 0, i, sum / (float)(rows.divisor * columns.divisor));
}

/* y = the sum of x over the window, divided by its size          dim: pool_window.h */
#include "pool_window.h"

CUDA_BODY void avg_pool_strip(const struct cuda_args *a, int64_t i, int lanes) {
    const struct pool_place place = pool_place_of(a, i, a->dim[3], a->dim[4]);
    struct pool_span rows = pool_window(a, 0, place.at[0]), columns = pool_window(a, 1, place.at[1]);
    int64_t width = a->dim[2];
    float divisor = (float)(rows.divisor * columns.divisor);
    struct cuda_quad_f32 sum = {{0, 0, 0, 0}};
    for (int64_t r = rows.first; r < rows.end; r++) {
        for (int64_t c = columns.first; c < columns.end; c++) {
            int64_t from = pool_index(a, &place, a->dim[1] * width, r * width + c);
            struct cuda_quad_f32 x = cuda_load_quad(a, 0, from, lanes);
            for (int j = 0; j < CUDA_QUAD; j++)
                sum.at[j] += x.at[j];
        }
    }
    for (int j = 0; j < CUDA_QUAD; j++)
        sum.at[j] /= divisor;
    cuda_store_quad(a, 0, i, lanes, sum);
}

CUDA_BODY void avg_pool_quad(const struct cuda_args *a, int64_t i, int n) {
    int lanes = pool_lanes(a, n);
    for (int j = 0; j < n; j += lanes)
        avg_pool_strip(a, i + j, lanes);
}

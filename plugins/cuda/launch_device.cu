/* The table of functions on the device: every body of functions/ as CUDA kernels. */
#include "variants.cuh"

#include "norm.h"
#include "tree.h"

#include "functions_all.h"

static const int64_t MAX_BLOCKS = 65535, MAX_UPDATE_BLOCKS = 1024; /* the latter for each segment */
enum { WARPS = CUDA_THREADS / CUDA_WARP };

/* ---- tiles of folds ----------------------------------------------------------------------------------------------------- */

/* Of a thread in a tile: elements first, first + step, … below end of the row. Beyond the end and beyond the last row
   it takes an element that is there and lets it count 0: a load that waits for no condition. */
struct place {
    int64_t row, chunk, first, end;
    int step, lane;
    bool is_row;
    __device__ bool has(int i) const { return is_row && first + i * step < end; }
    __device__ int64_t at(int i) const { return first + i * step < end ? first + i * step : end - 1; }
};

static __device__ place place_of(const cuda_fold &f, int64_t tile) {
    const int64_t across =
        (f.n + f.lanes - 1) / f.lanes; /* tiles of a chunk: neighbours share lines of memory */
    place p;
    p.lane = threadIdx.x % f.lanes;
    p.row = tile % across * f.lanes + p.lane;
    p.is_row = p.row < f.n;
    p.row = p.is_row ? p.row : f.n - 1;
    p.chunk = tile / across;
    p.step = CUDA_THREADS / f.lanes;
    p.first = p.chunk * f.chunk + threadIdx.x / f.lanes;
    p.end = p.chunk * f.chunk + cuda_fold_elements(&f, p.chunk);
    return p;
}

/* The sum over all threads of the same lane, for all of them: within each warp by halves, then over the warps in order. */
static __device__ float sum_lane(int lanes, float mine, float (*shared)[CUDA_WARP]) {
    int warp = threadIdx.x / CUDA_WARP, at = threadIdx.x % CUDA_WARP;
    for (int offset = CUDA_WARP / 2; offset >= lanes; offset /= 2)
        mine += __shfl_down_sync(0xFFFFFFFFu, mine, offset);
    if (at < lanes)
        shared[warp][at] = mine;
    __syncthreads();
    mine = 0;
    for (int w = 0; w < WARPS; w++)
        mine += shared[w][threadIdx.x % lanes];
    __syncthreads();
    return mine;
}

/* ---- kernels ------------------------------------------------------------------------------------------------------------ */

#define CUDA_MAP(name)                                                            \
    static __global__ void name##_kernel(const cuda_args args, int64_t n) {       \
        for (int64_t i = blockIdx.x * (int64_t)CUDA_THREADS + threadIdx.x; i < n; \
             i += gridDim.x * (int64_t)CUDA_THREADS)                              \
            name##_map(&args, i);                                                 \
    }

#define CUDA_QUADS(name, large_in, large_out)                                                   \
    template <int TYPE, bool IS_INNERMOST>                                                      \
    static __global__ void name##_kernel(const cuda_args given, int64_t n) {                    \
        const cuda_args args = args_of_variant<TYPE, IS_INNERMOST>(given, large_in, large_out); \
        for (int64_t i = CUDA_QUAD * (blockIdx.x * (int64_t)CUDA_THREADS + threadIdx.x); i < n; \
             i += CUDA_QUAD * (gridDim.x * (int64_t)CUDA_THREADS))                              \
            name##_quad(&args, i, n - i < CUDA_QUAD ? (int)(n - i) : CUDA_QUAD);                \
    }

#define CUDA_UPDATE(name)                                                                      \
    static __global__ void name##_kernel(const cuda_args args, const cuda_segments segments) { \
        const cuda_segment &segment = segments.at[blockIdx.y];                                 \
        const cuda_args mine = cuda_args_of(&args, &segment);                                  \
        for (int64_t i = blockIdx.x * (int64_t)CUDA_THREADS + threadIdx.x; i < segment.n;      \
             i += gridDim.x * (int64_t)CUDA_THREADS)                                           \
            name##_map(&mine, i);                                                              \
    }

/* The rows of a team of 32: all of a warp have the same. */
#define EACH_ROW(row, n)                                                                 \
    for (int64_t row = blockIdx.x * (int64_t)WARPS + threadIdx.x / CUDA_WARP; row < (n); \
         row += gridDim.x * (int64_t)WARPS)

#define CUDA_ROWS(name)                                                         \
    static __global__ void name##_kernel(const cuda_args args, int64_t n) {     \
        const cuda_team team = {(int)threadIdx.x % CUDA_WARP, CUDA_WARP, NULL}; \
        EACH_ROW(row, n)                                                        \
        name##_row(&args, row, team);                                           \
    }

#define CUDA_FOLD(name, large_in, large_out)                                                             \
    template <int TYPE, bool IS_INNERMOST>                                                               \
    static __global__ void name##_kernel(const cuda_args given, const cuda_fold f, float *partial) {     \
        const cuda_args args = args_of_variant<TYPE, IS_INNERMOST>(given, large_in, large_out);          \
        __shared__ float shared[WARPS][CUDA_WARP];                                                       \
        for (int64_t tile = blockIdx.x; tile < f.tiles; tile += gridDim.x) {                             \
            const place p = place_of(f, tile);                                                           \
            float mine[CUDA_FOLD_SUMS] = {};                                                             \
            for (int i = 0; i < CUDA_FOLD_ITEMS && p.first + i * p.step < p.end; i += 4) {               \
                float value[4][CUDA_FOLD_SUMS] = {};                                                     \
                _Pragma("unroll") for (int j = 0; j < 4; j++)                                            \
                    name##_value(&args, p.row, p.at(i + j), value[j]);                                   \
                _Pragma("unroll") for (int j = 0; j < 4; j++) {                                          \
                    for (int s = 0; s < CUDA_FOLD_SUMS; s++)                                             \
                        mine[s] += p.has(i + j) ? value[j][s] : 0;                                       \
                }                                                                                        \
            }                                                                                            \
            for (int s = 0; s < CUDA_FOLD_SUMS; s++)                                                     \
                mine[s] = sum_lane(f.lanes, mine[s], shared);                                            \
            if ((int)threadIdx.x >= f.lanes || !p.is_row)                                                \
                continue;                                                                                \
            if (f.chunks == 1) {                                                                         \
                const double sums[CUDA_FOLD_SUMS] = {mine[0], mine[1]};                                  \
                name##_finish(&args, p.row, sums);                                                       \
            } else {                                                                                     \
                for (int s = 0; s < CUDA_FOLD_SUMS; s++)                                                 \
                    cuda_fold_partial(&f, partial, p.row, p.chunk)[s] = mine[s];                         \
            }                                                                                            \
        }                                                                                                \
    }                                                                                                    \
    static __global__ void name##_join_kernel(const cuda_args args, const cuda_fold f, float *partial) { \
        __shared__ double shared[WARPS];                                                                 \
        const cuda_team team = {(int)threadIdx.x, CUDA_THREADS, shared};                                 \
        for (int64_t row = blockIdx.x; row < f.n; row += gridDim.x) {                                    \
            double sums[CUDA_FOLD_SUMS];                                                                 \
            cuda_fold_join(&f, partial, row, team, sums);                                                \
            if (team.lane == 0)                                                                          \
                name##_finish(&args, row, sums);                                                         \
        }                                                                                                \
    }

/* A thread keeps its elements, so that memory is read once although the deviations need the chunk's mean. */
#define CUDA_MOMENTS(name, large_in, large_out)                                                          \
    template <int TYPE, bool IS_INNERMOST>                                                               \
    static __global__ void name##_kernel(const cuda_args given, const cuda_fold f, float *partial) {     \
        const cuda_args args = args_of_variant<TYPE, IS_INNERMOST>(given, large_in, large_out);          \
        __shared__ float shared[WARPS][CUDA_WARP];                                                       \
        for (int64_t tile = blockIdx.x; tile < f.tiles; tile += gridDim.x) {                             \
            const place p = place_of(f, tile);                                                           \
            float held[CUDA_FOLD_ITEMS], sum = 0, m2 = 0;                                                \
            _Pragma("unroll") for (int i = 0; i < CUDA_FOLD_ITEMS; i++) held[i] =                        \
                name##_element(&args, p.row, p.at(i));                                                   \
            _Pragma("unroll") for (int i = 0; i < CUDA_FOLD_ITEMS; i++) sum += p.has(i) ? held[i] : 0;   \
            const float n = (float)cuda_fold_elements(&f, p.chunk);                                      \
            const float mean = sum_lane(f.lanes, sum, shared) / n;                                       \
            _Pragma("unroll") for (int i = 0; i < CUDA_FOLD_ITEMS; i++) {                                \
                float d = p.has(i) ? held[i] - mean : 0;                                                 \
                m2 += d * d;                                                                             \
            }                                                                                            \
            m2 = sum_lane(f.lanes, m2, shared);                                                          \
            if ((int)threadIdx.x >= f.lanes || !p.is_row)                                                \
                continue;                                                                                \
            if (f.chunks == 1) {                                                                         \
                const cuda_moments all = {n, mean, m2};                                                  \
                name##_finish(&args, p.row, &all);                                                       \
            } else {                                                                                     \
                float *to = cuda_fold_partial(&f, partial, p.row, p.chunk);                              \
                to[0] = mean;                                                                            \
                to[1] = m2;                                                                              \
            }                                                                                            \
        }                                                                                                \
    }                                                                                                    \
    static __global__ void name##_join_kernel(const cuda_args args, const cuda_fold f, float *partial) { \
        __shared__ double shared[WARPS];                                                                 \
        const cuda_team team = {(int)threadIdx.x, CUDA_THREADS, shared};                                 \
        for (int64_t row = blockIdx.x; row < f.n; row += gridDim.x) {                                    \
            const cuda_moments all = cuda_moments_join(&f, partial, row, team);                          \
            if (team.lane == 0)                                                                          \
                name##_finish(&args, row, &all);                                                         \
        }                                                                                                \
    }
#include "functions.def"
#undef CUDA_MAP
#undef CUDA_QUADS
#undef CUDA_UPDATE
#undef CUDA_ROWS
#undef CUDA_FOLD
#undef CUDA_MOMENTS

/* ---- launching ---------------------------------------------------------------------------------------------------------- */

typedef void launcher(cudaStream_t stream, const struct cuda_launch *launch);

/* Blocks for n things of which a block takes `each` at a time. */
static unsigned blocks(int64_t n, int each, int64_t most = MAX_BLOCKS) {
    int64_t wanted = (n + each - 1) / each;
    return (unsigned)(wanted < most ? wanted : most);
}

#define CUDA_MAP(name)                                                          \
    static void name##_launch(cudaStream_t stream, const cuda_launch *l) {      \
        CUDA_LAUNCH(name##_kernel, blocks(l->n, CUDA_THREADS), *l->args, l->n); \
    }
#define CUDA_QUADS(name, large_in, large_out)                                                          \
    static void name##_launch(cudaStream_t stream, const cuda_launch *l) {                             \
        CUDA_LAUNCH_VARIANT(name##_kernel, large_in, large_out, blocks(l->n, CUDA_QUAD *CUDA_THREADS), \
                            *l->args, l->n);                                                           \
    }
#define CUDA_UPDATE(name)                                                               \
    static void name##_launch(cudaStream_t stream, const cuda_launch *l) {              \
        const dim3 grid(blocks(l->n, CUDA_THREADS, MAX_UPDATE_BLOCKS), l->segments->n); \
        CUDA_LAUNCH(name##_kernel, grid, *l->args, *l->segments);                       \
    }
#define CUDA_ROWS(name)                                                    \
    static void name##_launch(cudaStream_t stream, const cuda_launch *l) { \
        CUDA_LAUNCH(name##_kernel, blocks(l->n, WARPS), *l->args, l->n);   \
    }
#define CUDA_FOLD(name, large_in, large_out)                                                     \
    static void name##_launch(cudaStream_t stream, const cuda_launch *l) {                       \
        const cuda_fold f = cuda_fold_of(l->n, l->row, l->is_near);                              \
        CUDA_LAUNCH_VARIANT(name##_kernel, large_in, large_out, blocks(f.tiles, 1), *l->args, f, \
                            l->partial);                                                         \
        if (f.chunks > 1)                                                                        \
            CUDA_LAUNCH(name##_join_kernel, blocks(f.n, 1), *l->args, f, l->partial);            \
    }
#define CUDA_MOMENTS(name, large_in, large_out) CUDA_FOLD(name, large_in, large_out)
#include "functions.def"
#undef CUDA_MAP
#undef CUDA_QUADS
#undef CUDA_UPDATE
#undef CUDA_ROWS
#undef CUDA_FOLD
#undef CUDA_MOMENTS

static launcher *const table[CUDA_N_FUNCTIONS] = {
#define CUDA_MAP(name) name##_launch,
#define CUDA_QUADS(name, ...) name##_launch,
#define CUDA_UPDATE(name) name##_launch,
#define CUDA_ROWS(name) name##_launch,
#define CUDA_FOLD(name, ...) name##_launch,
#define CUDA_MOMENTS(name, ...) name##_launch,
#include "functions.def"
#undef CUDA_MAP
#undef CUDA_QUADS
#undef CUDA_UPDATE
#undef CUDA_ROWS
#undef CUDA_FOLD
#undef CUDA_MOMENTS
};

cudaError_t cuda_launch_now(cudaStream_t stream, const struct cuda_launch *launch) {
    if (launch->n == 0)
        return cudaSuccess;
    table[launch->function](stream, launch);
    return cudaPeekAtLastError();
}

/* The table of functions on the device: every body of functions/ as a CUDA kernel. */
#include "launch.h"

#include <cub/block/block_reduce.cuh>

#include "functions_all.h"

enum { THREADS = 256 };
static const int64_t MAX_BLOCKS = 65535;

/* ---- kernels ------------------------------------------------------------------------------------------------------------ */

struct fold_sums {
    float at[CUDA_FOLD_SUMS];
};

struct fold_plus {
    __device__ fold_sums operator()(const fold_sums &a, const fold_sums &b) const {
        fold_sums sum;
        for (int k = 0; k < CUDA_FOLD_SUMS; k++)
            sum.at[k] = a.at[k] + b.at[k];
        return sum;
    }
};

#define CUDA_MAP(name)                                                                        \
    static __global__ void name##_kernel(const struct cuda_args args, int64_t n) {            \
        for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < n;                  \
             i += gridDim.x * (int64_t)THREADS)                                               \
            name##_map(&args, i);                                                             \
    }
/* A block for each row; the order of the additions depends on the row's length alone. */
#define CUDA_FOLD(name)                                                                       \
    static __global__ void name##_kernel(const struct cuda_args args, int64_t n, int64_t m) { \
        typedef cub::BlockReduce<fold_sums, THREADS> reduce;                                  \
        __shared__ typename reduce::TempStorage storage;                                      \
        for (int64_t row = blockIdx.x; row < n; row += gridDim.x) {                           \
            fold_sums mine = {};                                                              \
            for (int64_t k = threadIdx.x; k < m; k += THREADS) {                              \
                float value[CUDA_FOLD_SUMS] = {};                                             \
                name##_value(&args, row, k, value);                                           \
                for (int s = 0; s < CUDA_FOLD_SUMS; s++)                                      \
                    mine.at[s] += value[s];                                                   \
            }                                                                                 \
            fold_sums sums = reduce(storage).Reduce(mine, fold_plus());                       \
            if (threadIdx.x == 0)                                                             \
                name##_finish(&args, row, sums.at);                                           \
            __syncthreads();                                                                  \
        }                                                                                     \
    }
#include "functions.def"
#undef CUDA_MAP
#undef CUDA_FOLD

/* ---- launching ---------------------------------------------------------------------------------------------------------- */

typedef void launcher(cudaStream_t stream, const struct cuda_launch *launch);

static unsigned blocks(int64_t n) { return (unsigned)(n < MAX_BLOCKS ? n : MAX_BLOCKS); }

#define CUDA_MAP(name)                                                                                      \
    static void name##_launch(cudaStream_t stream, const struct cuda_launch *launch) {                      \
        name##_kernel<<<blocks((launch->n + THREADS - 1) / THREADS), THREADS, 0, stream>>>(*launch->args,   \
                                                                                           launch->n);      \
    }
#define CUDA_FOLD(name)                                                                                     \
    static void name##_launch(cudaStream_t stream, const struct cuda_launch *launch) {                      \
        name##_kernel<<<blocks(launch->n), THREADS, 0, stream>>>(*launch->args, launch->n, launch->row);    \
    }
#include "functions.def"
#undef CUDA_MAP
#undef CUDA_FOLD

static launcher *const table[CUDA_N_FUNCTIONS] = {
#define CUDA_MAP(name) name##_launch,
#define CUDA_FOLD(name) name##_launch,
#include "functions.def"
#undef CUDA_MAP
#undef CUDA_FOLD
};

cudaError_t cuda_launch_now(cudaStream_t stream, const struct cuda_launch *launch) {
    if (launch->n == 0)
        return cudaSuccess;
    table[launch->function](stream, launch);
    return cudaPeekAtLastError();
}

/* Variants of the kernels that wait for memory alone. What type its large operands have, and whether channels are
   innermost, is known to a variant when it is compiled: then no branch stands between its loads, and many are on their way
   at once. There is one for each type with channels innermost or not, and one for any mixture. */
#ifndef CONVOY_CUDA_VARIANTS_CUH
#define CONVOY_CUDA_VARIANTS_CUH

#include "launch.h"

enum { ANY_TYPE = -1 };

/* The arguments as a variant knows them. Bit k of large_in: in[k] is large; the others are float32. */
template <int TYPE, bool IS_INNERMOST>
static __device__ cuda_args args_of_variant(const cuda_args &args, unsigned large_in, unsigned large_out) {
    cuda_args a = args;
    for (int k = 0; k < CUDA_ARGS_IN && TYPE != ANY_TYPE; k++)
        a.in_type[k] = large_in >> k & 1 ? TYPE : CUDA_F32;
    for (int k = 0; k < CUDA_ARGS_OUT && TYPE != ANY_TYPE; k++)
        a.out_type[k] = large_out >> k & 1 ? TYPE : CUDA_F32;
    if (IS_INNERMOST)
        a.dim[1] = 1;
    return a;
}

/* The type that all large operands have while the others are float32. */
static int variant_of(const cuda_args &a, unsigned large_in, unsigned large_out) {
    for (int type = CUDA_F32; type <= CUDA_F16; type++) {
        bool fits = true;
        for (int k = 0; k < CUDA_ARGS_IN; k++)
            fits &= !a.in[k] || a.in_type[k] == (large_in >> k & 1 ? type : CUDA_F32);
        for (int k = 0; k < CUDA_ARGS_OUT; k++)
            fits &= !a.out[k] || a.out_type[k] == (large_out >> k & 1 ? type : CUDA_F32);
        if (fits)
            return type;
    }
    return ANY_TYPE;
}

#ifndef CUDA_LAUNCH /* tests run kernels in their own way */
#define CUDA_LAUNCH(kernel, grid, ...) kernel<<<grid, CUDA_THREADS, 0, stream>>>(__VA_ARGS__)
#endif

#define CUDA_LAUNCH_TYPE(kernel, type, grid, ...)                  \
    do {                                                           \
        if (l->args->dim[1] == 1)                                  \
            CUDA_LAUNCH((kernel<type, true>), grid, __VA_ARGS__);  \
        else                                                       \
            CUDA_LAUNCH((kernel<type, false>), grid, __VA_ARGS__); \
    } while (0)

/* Launches the variant of `kernel` for the launch `l`. */
#define CUDA_LAUNCH_VARIANT(kernel, large_in, large_out, grid, ...)    \
    do {                                                               \
        switch (variant_of(*l->args, large_in, large_out)) {           \
        case CUDA_F32:                                                 \
            CUDA_LAUNCH_TYPE(kernel, CUDA_F32, grid, __VA_ARGS__);     \
            break;                                                     \
        case CUDA_BF16:                                                \
            CUDA_LAUNCH_TYPE(kernel, CUDA_BF16, grid, __VA_ARGS__);    \
            break;                                                     \
        case CUDA_F16:                                                 \
            CUDA_LAUNCH_TYPE(kernel, CUDA_F16, grid, __VA_ARGS__);     \
            break;                                                     \
        default:                                                       \
            CUDA_LAUNCH((kernel<ANY_TYPE, false>), grid, __VA_ARGS__); \
        }                                                              \
    } while (0)

#endif

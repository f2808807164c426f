/* The plugin's own functions on the device, through one table: functions.def. The body of each is in functions/NAME.h,
   written once for both sides: launch_device.cu makes a CUDA kernel of it, tests/fakecuda runs it on the host.

   A map calls its body for each index. A fold has rows of elements: a value per element, up to CUDA_FOLD_SUMS of
   them, is summed over the row in a fixed order, and a last body is called with the sums of a row. */
#ifndef CONVOY_CUDA_LAUNCH_H
#define CONVOY_CUDA_LAUNCH_H

#include "functions.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>

enum cuda_function {
#define CUDA_MAP(name) CUDA_##name,
#define CUDA_FOLD(name) CUDA_##name,
#include "functions.def"
#undef CUDA_MAP
#undef CUDA_FOLD
    CUDA_N_FUNCTIONS,
};

struct cuda_range { /* of device memory that a launch touches: what the stand-in checks */
    const void *at;
    size_t n_bytes;
    bool is_write;
};

struct cuda_launch {
    enum cuda_function function;
    const char *name; /* the operator's, for messages */
    const struct cuda_args *args;
    int64_t n;   /* indices of a map; rows of a fold */
    int64_t row; /* elements of a fold's row */
    int n_ranges;
    const struct cuda_range *ranges;
};

/* Enqueues it. One of two: launch_device.cu, or tests/fakecuda/launch_host.c. */
#ifdef __cplusplus
extern "C"
#endif
    cudaError_t
    cuda_launch_now(cudaStream_t stream, const struct cuda_launch *launch);

#endif

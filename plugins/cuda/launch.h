/* The plugin's own functions on the device, through one table: functions.def. The body of each is in functions/NAME.h,
   written once for both sides: launch_device.cu makes CUDA kernels of it, tests/fakecuda runs it on the host.

   MAP:     NAME_map(args, i) for each index.
   QUADS:   NAME_quad(args, i, n) for elements i to i + n - 1, four but at the end: for functions that wait for
            memory alone.
   UPDATE:  NAME_map(args, i) for each index of each segment, with its operands in place.
   ROWS:    NAME_row(args, row, team) for each row, whose elements a small team shares out.
   FOLD:    NAME_value(args, row, k, values) for each element of each row; the values, CUDA_FOLD_SUMS of them, are
            summed over the row (fold.h) and given to NAME_finish(args, row, sums).
   MOMENTS: NAME_element(args, row, k) for each element; mean and M2 of the row go to
            NAME_finish(args, row, moments). */
#ifndef CONVOY_CUDA_LAUNCH_H
#define CONVOY_CUDA_LAUNCH_H

#include "fold.h"

#include <cuda_runtime_api.h>

enum cuda_function {
#define CUDA_MAP(name) CUDA_##name,
#define CUDA_QUADS(name, ...) CUDA_##name,
#define CUDA_UPDATE(name) CUDA_##name,
#define CUDA_ROWS(name) CUDA_##name,
#define CUDA_FOLD(name, ...) CUDA_##name,
#define CUDA_MOMENTS(name, ...) CUDA_##name,
#include "functions.def"
#undef CUDA_MAP
#undef CUDA_QUADS
#undef CUDA_UPDATE
#undef CUDA_ROWS
#undef CUDA_FOLD
#undef CUDA_MOMENTS
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
    int64_t n; /* indices of a map or of quads, of the largest segment of an update; else rows */
    /* of folds and moments: elements of a row, are those of neighbouring rows side by side in memory, and the partial
       sums (cuda_fold_bytes) */
    int64_t row;
    bool is_near;
    float *partial;
    const struct cuda_segments *segments; /* of updates */
    int n_ranges;
    const struct cuda_range *ranges;
};

/* Enqueues it. One of two: launch_device.cu, or tests/fakecuda/launch.c. */
#ifdef __cplusplus
extern "C"
#endif
    cudaError_t
    cuda_launch_now(cudaStream_t stream, const struct cuda_launch *launch);

#endif

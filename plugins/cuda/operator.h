/* Operators that are one launch of a function of the plugin's own. */
#ifndef CONVOY_CUDA_OPERATOR_H
#define CONVOY_CUDA_OPERATOR_H

#include "cuda.h"
#include "kernels.h"
#include "launch.h"
#include "layout.h"

/* What a kernel does beside its operands, made by `prepare`. */
struct cuda_plan {
    enum cuda_function function;
    int64_t n, row;
    struct cuda_args args; /* dims and numbers; in and out are set by each run */
};

/* Makes a kernel of one launch: in[] and out[] of the arguments are the call's operands in their order (at most
   CUDA_ARGS_IN and CUDA_ARGS_OUT). */
cvy_status cuda_prepare_launch(struct cvy_device *device, const struct cvy_call *call,
                               const struct cvy_kernel_impl *impl, const struct cuda_plan *plan,
                               struct cvy_kernel **out);
cvy_status cuda_run_launch(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch);
void cuda_release_launch(struct cvy_kernel *kernel);

#endif

/* Operators that are launches of functions of the plugin's own: a plan says which, made by `prepare`. */
#ifndef CONVOY_CUDA_OPERATOR_H
#define CONVOY_CUDA_OPERATOR_H

#include "cuda.h"
#include "kernels.h"
#include "launch.h"
#include "layout.h"

enum { CUDA_MAX_STEPS = 3 };

/* What an argument of a step is: nothing; the plan's table; CUDA_IN + i, CUDA_OUT + o: an operand of the call. One
   that is absent is NULL. */
enum { CUDA_NONE, CUDA_TABLE, CUDA_IN, CUDA_OUT = CUDA_IN + 32 };

struct cuda_step {
    enum cuda_function function;
    int64_t n, row; /* as in struct cuda_launch */
    bool is_near;
    uint8_t in[CUDA_ARGS_IN], out[CUDA_ARGS_OUT];
    struct cuda_args args; /* dims and numbers; addresses and types are filled in */
};

struct cuda_plan {
    int n_steps;
    struct cuda_step step[CUDA_MAX_STEPS];
    size_t table_bytes; /* memory where a step leaves something (float) for the later ones; aligned */
};

/* One step whose arguments are the call's operands in their order. */
struct cuda_plan cuda_plan_simple(const struct cvy_call *call, enum cuda_function function, int64_t n);

/* Makes the kernel; *scratch_bytes: for the table and the partial sums of folds. */
cvy_status cuda_prepare_plan(struct cvy_device *device, const struct cvy_call *call,
                             const struct cvy_kernel_impl *impl, const struct cuda_plan *plan,
                             struct cvy_kernel **out, size_t *scratch_bytes);
cvy_status cuda_run_plan(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch);
void cuda_release_plan(struct cvy_kernel *kernel);

/* supports: operands of floating-point type have 32 or 16 bits; 32 bits. */
bool cuda_supports_half(const struct cvy_device *device, const struct cvy_call *call);
bool cuda_supports_f32(const struct cvy_device *device, const struct cvy_call *call);

/* For `choose`: all lie as input 0 does. */
cvy_status cuda_choose_first(struct cvy_device *device, struct cvy_call *call);

/* The kernel of operator NAME, of the function prepare_NAME; further slots, `supports` at least, follow. */
#define CUDA_PLAN_KERNEL(NAME, ...)                                                  \
    const struct cvy_kernel_impl cuda_kernel_##NAME = {.op = #NAME,                  \
                                                       .prepare = prepare_##NAME,    \
                                                       .run = cuda_run_plan,         \
                                                       .release = cuda_release_plan, \
                                                       __VA_ARGS__};

#endif

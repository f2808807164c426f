/* The losses of a shard, and accuracy: image by image, then a sum over the images. */
#include "operator.h"

#include "ops/cross_entropy.h"

/* The sum of what a first step left in the table, a number for each image. */
static struct cuda_step sum_of_images(enum cuda_function function, int64_t images) {
    return (struct cuda_step){.function = function, .n = 1, .row = images, .in = {CUDA_TABLE}};
}

/* ---- cross_entropy -------------------------------------------------------------------------------------------- */

/* Of either kind: `function` leaves the images' losses in the table. Its dim and number are the caller's. */
static struct cuda_plan loss_plan(const struct cvy_call *call, enum cuda_function function) {
    enum { LOGITS = CUDA_IN, LABELS, DIVISOR };
    enum { LOSS = CUDA_OUT, LOSSES, PROBABILITIES };
    const int64_t images = call->in[0].desc.shape.dim[0];
    struct cuda_plan plan = {.n_steps = call->out[CVY_CROSS_ENTROPY_LOSS].is_absent ? 1 : 2,
                             .step = {{.function = function,
                                       .n = images,
                                       .in = {LOGITS, LABELS},
                                       .out = {LOSSES, PROBABILITIES, CUDA_TABLE}},
                                      sum_of_images(CUDA_batch_mean, images)},
                             .table_bytes = (size_t)images * sizeof(float)};
    plan.step[1].in[1] = DIVISOR;
    plan.step[1].out[0] = LOSS;
    return plan;
}

static cvy_status prepare_cross_entropy(struct cvy_device *device, const struct cvy_call *call,
                                        struct cvy_kernel **out, size_t *scratch_bytes) {
    const double smoothing = ((const struct cvy_cross_entropy_attrs *)call->attrs)->label_smoothing;
    struct cuda_plan plan = loss_plan(call, CUDA_cross_entropy);
    plan.step[0].args =
        (struct cuda_args){.dim = {call->in[0].desc.shape.dim[1]}, .number = {(float)smoothing}};
    return cuda_prepare_plan(device, call, &cuda_kernel_cross_entropy, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(cross_entropy, .supports = cuda_supports_half)

static cvy_status prepare_cross_entropy_backward(struct cvy_device *device, const struct cvy_call *call,
                                                 struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_shape *logits = &call->out[0].desc.shape;
    const double smoothing = ((const struct cvy_cross_entropy_attrs *)call->attrs)->label_smoothing;
    const double spread = smoothing / (double)logits->dim[1];
    struct cuda_plan plan = cuda_plan_simple(call, CUDA_cross_entropy_backward, cvy_shape_count(logits));
    struct cuda_args *args = &plan.step[0].args;
    args->dim[0] = logits->dim[1];
    args->number[0] = (float)spread;
    args->number[1] = (float)(1 - smoothing + spread);
    return cuda_prepare_plan(device, call, &cuda_kernel_cross_entropy_backward, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(cross_entropy_backward, .supports = cuda_supports_half)

/* ---- soft_cross_entropy ----------------------------------------------------------------------------------------- */

/* dim and number of both functions: K; 1 - s, s / K. */
static struct cuda_args soft_args(const struct cvy_call *call, int64_t classes) {
    const double smoothing = ((const struct cvy_cross_entropy_attrs *)call->attrs)->label_smoothing;
    return (struct cuda_args){.dim = {classes},
                              .number = {(float)(1 - smoothing), (float)(smoothing / (double)classes)}};
}

static cvy_status prepare_soft_cross_entropy(struct cvy_device *device, const struct cvy_call *call,
                                             struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_shape *logits = &call->in[0].desc.shape;
    struct cuda_plan plan = loss_plan(call, CUDA_soft_cross_entropy);
    plan.step[0].args = soft_args(call, logits->dim[1]);
    return cuda_prepare_plan(device, call, &cuda_kernel_soft_cross_entropy, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(soft_cross_entropy, .supports = cuda_supports_half)

static cvy_status prepare_soft_cross_entropy_backward(struct cvy_device *device, const struct cvy_call *call,
                                                      struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_shape *logits = &call->out[0].desc.shape;
    struct cuda_plan plan = cuda_plan_simple(call, CUDA_soft_cross_entropy_backward, logits->dim[0]);
    plan.step[0].args = soft_args(call, logits->dim[1]);
    return cuda_prepare_plan(device, call, &cuda_kernel_soft_cross_entropy_backward, &plan, out,
                             scratch_bytes);
}

CUDA_PLAN_KERNEL(soft_cross_entropy_backward, .supports = cuda_supports_half)

/* ---- batch_mean ----------------------------------------------------------------------------------------------- */

static cvy_status prepare_batch_mean(struct cvy_device *device, const struct cvy_call *call,
                                     struct cvy_kernel **out, size_t *scratch_bytes) {
    struct cuda_plan plan = cuda_plan_simple(call, CUDA_batch_mean, 1);
    plan.step[0].row = call->in[0].desc.shape.dim[0];
    return cuda_prepare_plan(device, call, &cuda_kernel_batch_mean, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(batch_mean, .supports = cuda_supports_half)

static cvy_status prepare_batch_mean_backward(struct cvy_device *device, const struct cvy_call *call,
                                              struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cuda_plan plan =
        cuda_plan_simple(call, CUDA_batch_mean_backward, call->out[0].desc.shape.dim[0]);
    return cuda_prepare_plan(device, call, &cuda_kernel_batch_mean_backward, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(batch_mean_backward, .supports = cuda_supports_half)

/* ---- accuracy ------------------------------------------------------------------------------------------------- */

static cvy_status prepare_accuracy(struct cvy_device *device, const struct cvy_call *call,
                                   struct cvy_kernel **out, size_t *scratch_bytes) {
    enum { LOGITS = CUDA_IN, LABELS };
    enum { RANKS = CUDA_OUT, HITS };
    const struct cvy_shape *logits = &call->in[0].desc.shape;
    struct cuda_plan plan = {.n_steps = call->out[CVY_ACCURACY_HITS].is_absent ? 1 : 2,
                             .step = {{.function = CUDA_accuracy,
                                       .n = logits->dim[0],
                                       .in = {LOGITS, LABELS},
                                       .out = {RANKS, CUDA_TABLE},
                                       .args = {.dim = {logits->dim[1], CVY_ACCURACY_WRONG(logits->dim[1])}}},
                                      sum_of_images(CUDA_hits, logits->dim[0])},
                             .table_bytes = (size_t)logits->dim[0] * sizeof(float)};
    plan.step[1].out[0] = HITS;
    return cuda_prepare_plan(device, call, &cuda_kernel_accuracy, &plan, out, scratch_bytes);
}

CUDA_PLAN_KERNEL(accuracy, .supports = cuda_supports_half)

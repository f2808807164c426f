/* Operators that move channels: one launch each, element by element of the output, in the first operand's layout. */
#include "operator.h"

#include "ops/channels.h"

static struct cuda_plan plan_of(const struct cvy_call *call, enum cuda_function function) {
    const struct cvy_desc *y = &call->out[0].desc;
    struct cuda_plan plan = cuda_plan_simple(call, function, cvy_shape_count(&y->shape));
    int64_t *dim = plan.step[0].args.dim;
    struct cuda_view view = {.channels = 1, .channel = 1};
    cuda_layout_view(call->out[0].layout, y, &view);
    dim[0] = view.channels;
    dim[1] = view.channel;
    return plan;
}

static void fill_concat(const struct cvy_call *call, int64_t *dim) {
    for (int k = 0; k < call->n_in; k++)
        dim[2 + k] = call->in[k].is_absent ? 0 : call->in[k].desc.shape.dim[1];
}

static void fill_slice(const struct cvy_call *call, int64_t *dim) {
    dim[2] = call->in[0].desc.shape.dim[1];
    dim[3] = ((const struct cvy_channel_slice_attrs *)call->attrs)->first;
}

static void fill_shuffle(const struct cvy_call *call, int64_t *dim) {
    dim[2] = ((const struct cvy_channel_shuffle_attrs *)call->attrs)->groups;
}

#define CHANNEL_KERNEL(name, fill)                                                              \
    static cvy_status prepare_##name(struct cvy_device *device, const struct cvy_call *call,    \
                                     struct cvy_kernel **out, size_t *scratch_bytes) {          \
        struct cuda_plan plan = plan_of(call, CUDA_##name);                                     \
        fill(call, plan.step[0].args.dim);                                                      \
        return cuda_prepare_plan(device, call, &cuda_kernel_##name, &plan, out, scratch_bytes); \
    }                                                                                           \
    CUDA_PLAN_KERNEL(name, .supports = cuda_supports_half, .choose = cuda_choose_first)
CHANNEL_KERNEL(concat, fill_concat)
CHANNEL_KERNEL(channel_slice, fill_slice)
CHANNEL_KERNEL(channel_slice_backward, fill_slice)
CHANNEL_KERNEL(channel_shuffle, fill_shuffle)

/* What the kernels that call cuDNN and cuBLASLt share. */
#include "library.h"
#include "operator.h"

#include <limits.h>

static bool is_float(const struct cvy_operand_spec *spec) {
    cvy_dtype type = spec->desc.dtype;
    return !spec->is_absent && (type == CVY_F32 || type == CVY_F64 || type == CVY_BF16 || type == CVY_F16);
}

static const struct cvy_operand_spec *operand(const struct cvy_call *call, int i) {
    return i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
}

bool cuda_supports_alike(const struct cvy_device *device, const struct cvy_call *call) {
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        const struct cvy_operand_spec *spec = operand(call, i);
        if (is_float(spec) && spec->desc.dtype != call->in[0].desc.dtype)
            return false;
    }
    return cuda_supports_half(device, call);
}

bool cuda_supports_products(const struct cvy_device *device, const struct cvy_call *call) {
    return cuda_supports_half(device, call) && call->in[0].desc.dtype == call->in[1].desc.dtype;
}

cvy_status cuda_tensor_new(struct cuda_device *me, const struct cvy_desc *desc,
                           const struct cvy_layout *layout, cudnnTensorDescriptor_t *out) {
    const struct cvy_shape *shape = &desc->shape;
    int64_t last = shape->dim[shape->n - 1];
    int64_t dims[4] = {last ? cvy_shape_count(shape) / last : 0, last, 1, 1};
    for (int k = 0; k < 4 && layout == cuda_nhwc; k++)
        dims[k] = shape->dim[k];
    for (int k = 0; k < 4; k++) {
        if (dims[k] > INT_MAX)
            return CVY_FAIL(CVY_ERR_UNSUPPORTED, "%s: cuDNN takes no dimension of %lld", me->base.name,
                            (long long)dims[k]);
    }
    TRY_DNN(me, cudnnCreateTensorDescriptor(out));
    TRY_DNN(me, cudnnSetTensor4dDescriptor(*out, CUDNN_TENSOR_NHWC, cuda_dnn_type(desc->dtype), (int)dims[0],
                                           (int)dims[1], (int)dims[2], (int)dims[3]));
    return CVY_OK;
}

/* ---- launches around a library's call ------------------------------------------------------------------ */

static cvy_status launch(struct cuda_device *me, enum cuda_function function, const char *name, int64_t n,
                         const struct cuda_args *args, const struct cuda_range *ranges, int n_ranges) {
    return cuda_launch(me, &(struct cuda_launch){.function = function,
                                                 .name = name,
                                                 .args = args,
                                                 .n = n,
                                                 .n_ranges = n_ranges,
                                                 .ranges = ranges});
}

struct cuda_bias cuda_bias_of(const struct cvy_call *call, int64_t channels) {
    if (call->n_in < 3 || call->in[2].is_absent)
        return (struct cuda_bias){0};
    const struct cvy_desc *y = &call->out[0].desc;
    return (struct cuda_bias){channels, cvy_shape_count(&y->shape), y->dtype, call->in[2].desc.dtype};
}

cvy_status cuda_add_bias(struct cuda_device *me, const struct cuda_bias *bias, void *y, const void *values) {
    if (!bias->channels)
        return CVY_OK;
    const struct cuda_args args = {.in = {y, values},
                                   .out = {y},
                                   .in_type = {cuda_type_of(bias->y_type), cuda_type_of(bias->type)},
                                   .out_type = {cuda_type_of(bias->y_type)},
                                   .dim = {bias->channels}};
    size_t n_bytes = (size_t)bias->n * cvy_dtype_size(bias->y_type);
    const struct cuda_range ranges[] = {{y, n_bytes, false},
                                        {values, (size_t)bias->channels * cvy_dtype_size(bias->type), false},
                                        {y, n_bytes, true}};
    return launch(me, CUDA_add_channel, "bias", bias->n, &args, ranges, 3);
}

cvy_status cuda_cast(struct cuda_device *me, int64_t n, cvy_dtype from_type, const void *from,
                     cvy_dtype to_type, void *to) {
    const struct cuda_args args = {
        .in = {from}, .out = {to}, .in_type = {cuda_type_of(from_type)}, .out_type = {cuda_type_of(to_type)}};
    const struct cuda_range ranges[] = {{from, (size_t)n * cvy_dtype_size(from_type), false},
                                        {to, (size_t)n * cvy_dtype_size(to_type), true}};
    return launch(me, CUDA_cast, "cast", n, &args, ranges, 2);
}

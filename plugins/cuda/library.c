/* What the kernels that call cuDNN and cuBLASLt share. */
#include "library.h"

#include <limits.h>

static bool is_other_float(const struct cvy_operand_spec *spec) {
    cvy_dtype type = spec->desc.dtype;
    return !spec->is_absent && (type == CVY_F64 || type == CVY_BF16 || type == CVY_F16);
}

bool cuda_supports_f32(const struct cvy_device *device, const struct cvy_call *call) {
    (void)device;
    for (int i = 0; i < call->n_in; i++) {
        if (is_other_float(&call->in[i]))
            return false;
    }
    for (int o = 0; o < call->n_out; o++) {
        if (is_other_float(&call->out[o]))
            return false;
    }
    return true;
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
    TRY_DNN(me, cudnnSetTensor4dDescriptor(*out, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, (int)dims[0],
                                           (int)dims[1], (int)dims[2], (int)dims[3]));
    return CVY_OK;
}

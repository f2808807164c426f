/* channel_sum: the sum over every axis but one; the gradient of a bias. */
#include "ops/channel_sum.h"
#include "ops/infer.h"

#include <string.h>

static const struct cvy_attr attr_table[] = {
    {"axis", CVY_ATTR_INT, offsetof(struct cvy_channel_sum_attrs, axis), 1, -CVY_MAX_DIMS, CVY_MAX_DIMS - 1,
     "the axis that is kept; negative: from the end"},
};

/* The kept axis from the front; outside the shape when there is none such. */
static int axis_of(const void *attrs, const struct cvy_shape *shape) {
    int64_t axis = ((const struct cvy_channel_sum_attrs *)attrs)->axis;
    return (int)(axis < 0 ? axis + shape->n : axis);
}

static cvy_status infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_float(call, 0, NULL));
    const struct cvy_shape *x = &call->in[0].shape;
    int axis = axis_of(call->attrs, x);
    if (axis < 0 || axis >= x->n)
        return cvy_infer_fail(call, "axis %d is not one of its %d", axis, x->n);
    call->out[0] = cvy_desc_make(CVY_F32, CVY_SHAPE(x->dim[axis]));
    return CVY_OK;
}

static void reference(const struct cvy_reference *call) {
    const struct cvy_shape *x = &call->in_desc[0].shape;
    int64_t n = cvy_shape_count(x), inner = 1;
    int axis = axis_of(call->attrs, x);
    for (int k = axis + 1; k < x->n; k++)
        inner *= x->dim[k];
    memset(call->out[0], 0, (size_t)x->dim[axis] * sizeof(double));
    for (int64_t i = 0; i < n; i++)
        call->out[0][i / inner % x->dim[axis]] += call->in[0][i];
}

static void cost(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, (double)cvy_shape_count(&call->in[0].shape), out);
}

static const struct cvy_case cases[] = {
    {"", "f32[1,1]", 0, NULL},      {"", "f32[3,17]", 0, NULL},        {"", "f32[2,17,5,7]", 0, NULL},
    {"", "f32[3,64,4,4]", 0, NULL}, {"axis=-1", "f32[7,10]", 0, NULL}, {"axis=-1", "f32[2,3,5,10]", 0, NULL},
    {"axis=-1", "f32[3]", 0, NULL},
};

const struct cvy_op cvy_op_channel_sum = {
    .name = "channel_sum",
    .help = "y[c] = sum of x over all axes but one",
    .attrs_size = sizeof(struct cvy_channel_sum_attrs),
    .attrs = attr_table,
    .n_attrs = CVY_N(attr_table),
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 1,
    .in_names = (const char *const[]){"x"},
    .out_names = (const char *const[]){"y"},
    .narrow_in = 1u << 0,
    .infer = infer,
    .reference = reference,
    .cost = cost,
    .cases = cases,
    .n_cases = CVY_N(cases),
};

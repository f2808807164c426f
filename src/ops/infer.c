/* Checks that the operators' shape inference shares, and the common shapes, costs and gradient checks. */
#include "ops/infer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool cvy_infer_has(const struct cvy_infer *call, int i) {
    return i < call->n_in && !cvy_desc_is_absent(&call->in[i]);
}

/* "x f32[2,3,8,8], weight f32[4,3,3,3]" */
static void print_inputs(const struct cvy_infer *call, struct cvy_text *out) {
    const char *separator = "";
    for (int i = 0; i < call->n_in; i++) {
        if (!cvy_infer_has(call, i))
            continue;
        cvy_text_printf(out, "%s%s ", separator, call->op->in_names[i]);
        cvy_desc_print(out, &call->in[i]);
        separator = ", ";
    }
}

cvy_status cvy_infer_fail(const struct cvy_infer *call, const char *format, ...) {
    char reason[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    struct cvy_text inputs = {0};
    print_inputs(call, &inputs);
    cvy_status status =
        CVY_FAIL(CVY_ERR_USAGE, "%s(%s): %s", call->op->name, inputs.data ? inputs.data : "", reason);
    cvy_text_free(&inputs);
    return status;
}

static cvy_status expect_shape(const struct cvy_infer *call, int i, const struct cvy_shape *shape) {
    if (!shape || cvy_shape_equal(&call->in[i].shape, shape))
        return CVY_OK;
    struct cvy_text expected = {0};
    cvy_desc_print(&expected, &(struct cvy_desc){call->in[i].dtype, *shape});
    cvy_status status =
        cvy_infer_fail(call, "%s must be %s", call->op->in_names[i], expected.data ? expected.data : "");
    cvy_text_free(&expected);
    return status;
}

cvy_status cvy_infer_float(const struct cvy_infer *call, int i, const struct cvy_shape *shape) {
    cvy_dtype dtype = call->in[i].dtype;
    if (dtype != CVY_F32 && dtype != CVY_F64 && dtype != CVY_BF16 && dtype != CVY_F16)
        return cvy_infer_fail(call, "%s must be floating point", call->op->in_names[i]);
    return expect_shape(call, i, shape);
}

cvy_status cvy_infer_typed(const struct cvy_infer *call, int i, cvy_dtype dtype,
                           const struct cvy_shape *shape) {
    if (call->in[i].dtype != dtype)
        return cvy_infer_fail(call, "%s must be %s", call->op->in_names[i], cvy_dtype_name(dtype));
    return expect_shape(call, i, shape);
}

cvy_status cvy_infer_rank(const struct cvy_infer *call, int i, int rank) {
    CVY_TRY(cvy_infer_float(call, i, NULL));
    const struct cvy_shape *shape = &call->in[i].shape;
    if (shape->n != rank)
        return cvy_infer_fail(call, "%s must have %d dimensions, not %d", call->op->in_names[i], rank,
                              shape->n);
    if (cvy_shape_count(shape) == 0)
        return cvy_infer_fail(call, "%s must not be empty", call->op->in_names[i]);
    return CVY_OK;
}

cvy_status cvy_infer_unary(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_float(call, 0, NULL));
    call->out[0] = call->in[0];
    return CVY_OK;
}

cvy_status cvy_infer_binary(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_float(call, 0, NULL));
    CVY_TRY(cvy_infer_float(call, 1, &call->in[0].shape));
    call->out[0] = call->in[0];
    return CVY_OK;
}

cvy_status cvy_infer_optimizer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_typed(call, 0, CVY_F32, &CVY_SHAPE(2)));
    for (int i = 1; i < call->n_in; i++)
        CVY_TRY(cvy_infer_float(call, i, &call->in[1].shape));
    for (int o = 0; o < call->n_out; o++)
        call->out[o] = call->in[cvy_op_aliased_input(call->op, o)];
    return CVY_OK;
}

struct cvy_desc cvy_desc_make(cvy_dtype dtype, struct cvy_shape shape) {
    return (struct cvy_desc){dtype, shape};
}

void cvy_cost_fill(const struct cvy_infer *call, double flops, struct cvy_cost *out) {
    *out = (struct cvy_cost){.flops = flops};
    for (int i = 0; i < call->n_in; i++)
        out->bytes += cvy_infer_has(call, i) ? (double)cvy_desc_bytes(&call->in[i]) : 0;
    for (int o = 0; o < call->n_out; o++)
        out->bytes += (double)cvy_desc_bytes(&call->out[o]);
}

void cvy_cost_elementwise(const struct cvy_infer *call, struct cvy_cost *out) {
    cvy_cost_fill(call, (double)cvy_shape_count(&call->out[0].shape), out);
}

cvy_status cvy_grad_check(const struct cvy_graph *g, const struct cvy_node *node, const cvy_value *gout) {
    for (int o = 1; o < node->n_out; o++) {
        if (gout[o] != CVY_NONE)
            return CVY_FAIL(CVY_ERR_UNSUPPORTED,
                            "%s (%s) has no gradient through \"%s\"; differentiate \"%s\" only", node->name,
                            node->op->name, cvy_graph_value(g, node->out[o])->name,
                            cvy_graph_value(g, node->out[0])->name);
    }
    return CVY_OK;
}

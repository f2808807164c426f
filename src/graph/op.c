/* What follows from an operator's descriptor alone: how its inputs are grouped, which output lives in which input,
   what a call makes, and what it costs. */
#include "graph/op.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static bool is_variadic(const struct cvy_op *op) { return op->flags & CVY_OP_VARIADIC; }

int cvy_op_groups(const struct cvy_op *op, int n_in) {
    if (!is_variadic(op))
        return n_in >= op->n_in_min && n_in <= op->n_in ? 1 : -1;
    int n = n_in - op->n_lead_in;
    return n > 0 && op->n_in > 0 && n % op->n_in == 0 ? n / op->n_in : -1;
}

/* Input i as in_names counts: every group's inputs are the first group's. */
static int in_first_group(const struct cvy_op *op, int i) {
    return is_variadic(op) && i >= op->n_lead_in ? op->n_lead_in + (i - op->n_lead_in) % op->n_in : i;
}

bool cvy_op_is_optional(const struct cvy_op *op, int i) {
    return in_first_group(op, i) >= op->n_lead_in + op->n_in_min;
}

const char *cvy_op_in_name(const struct cvy_op *op, int i) { return op->in_names[in_first_group(op, i)]; }

int cvy_op_aliased_input(const struct cvy_op *op, int out) {
    int group = op->n_out > 0 ? out / op->n_out : 0;
    for (int i = 0; i < op->n_aliases; i++) {
        if (op->aliases[i].out != out - group * op->n_out)
            continue;
        int in = op->aliases[i].in;
        return in < op->n_lead_in ? in : in + group * op->n_in;
    }
    return -1;
}

/* One group: `in` is its lead and its inputs. */
static cvy_status infer_group(const struct cvy_op *op, const void *attrs, const struct cvy_desc *in,
                              struct cvy_desc *out) {
    struct cvy_infer call = {
        .op = op, .attrs = attrs, .n_in = op->n_lead_in + op->n_in, .n_out = op->n_out, .in = in};
    for (int o = 0; o < op->n_out && !op->infer; o++) {
        int i = cvy_op_aliased_input(op, o);
        if (i < 0)
            return CVY_FAIL(CVY_ERR_FAILED, "operator %s says nothing about its output \"%s\"", op->name,
                            op->out_names[o]);
        call.out[o] = in[i];
    }
    if (op->infer)
        CVY_TRY(op->infer(&call));
    memcpy(out, call.out, (size_t)op->n_out * sizeof *out);
    return CVY_OK;
}

cvy_status cvy_op_infer(const struct cvy_op *op, const void *attrs, int n_in, const struct cvy_desc *in,
                        struct cvy_desc *out) {
    int n_groups = cvy_op_groups(op, n_in), n_lead = op->n_lead_in;
    if (n_groups < 0 || op->n_out > CVY_MAX_OUT)
        return CVY_FAIL(CVY_ERR_FAILED, "operator %s cannot be called with %d inputs", op->name, n_in);
    if (n_groups == 1 && n_in == n_lead + op->n_in)
        return infer_group(op, attrs, in, out);
    struct cvy_desc *group; /* absent inputs left out at the end stay zeroed, which is CVY_DESC_ABSENT */
    cvy_status status = CVY_OK;
    CVY_TRY(CVY_ALLOC(group, (size_t)(n_lead + op->n_in)));
    for (int k = 0; k < n_groups; k++) {
        for (int i = 0; i < n_lead + op->n_in; i++) {
            int from = i < n_lead ? i : i + k * op->n_in;
            group[i] = from < n_in ? in[from] : CVY_DESC_ABSENT;
        }
        CVY_TRY_OUT(infer_group(op, attrs, group, out + k * op->n_out));
    }
out:
    free(group);
    return status;
}

void cvy_op_cost(const struct cvy_infer *call, struct cvy_cost *out) {
    *out = (struct cvy_cost){0};
    if (call->op->cost) {
        call->op->cost(call, out);
        return;
    }
    for (int i = 0; i < call->n_in; i++)
        out->bytes += cvy_desc_is_absent(&call->in[i]) ? 0 : (double)cvy_desc_bytes(&call->in[i]);
    for (int i = 0; i < call->n_out; i++)
        out->bytes += (double)cvy_desc_bytes(&call->out[i]);
}

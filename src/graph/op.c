/* What follows from an operator's descriptor alone: its cost, and which output lives in which input. */
#include "graph/op.h"

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

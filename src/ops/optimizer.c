/* See optimizer.h: what the operators of the optimisers share. */
#include "ops/optimizer.h"
#include "ops/cases.h"
#include "ops/infer.h"

enum { N_LEAD = 1 };

void cvy_optimizer_reference(const struct cvy_reference *call, int n_in, int n_out,
                             cvy_optimizer_update *update) {
    for (int first = N_LEAD, o = 0; first < call->n_in; first += n_in, o += n_out)
        update(call->attrs, call->in[0], cvy_shape_count(&call->in_desc[first].shape), call->in + first,
               call->out + o);
}

void cvy_optimizer_cost(const struct cvy_infer *call, double flops, struct cvy_cost *out) {
    double n = 0;
    for (int p = N_LEAD; p < call->n_in; p += call->op->n_in)
        n += (double)cvy_shape_count(&call->in[p].shape);
    cvy_cost_fill(call, flops * n, out);
}

void cvy_optimizer_fill(int i, const struct cvy_desc *desc, uint64_t seed, int n_in, unsigned positive,
                        double *values) {
    if (i > 0 && positive >> (i - N_LEAD) % n_in & 1) {
        cvy_fill_uniform(i, desc, seed, 0.1, 2, values);
        return;
    }
    cvy_fill_normal(i, desc, seed, values);
    if (i == 0) {
        values[0] = 0.01;
        values[1] = 7;
    }
}

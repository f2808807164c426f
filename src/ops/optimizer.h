/* Attributes of the optimisers, and the operands that all of them share.
   Inputs: hyper f32[2] {learning rate, number of this update from 1}, then one group per parameter: param,
   grad, states… (all of the parameter's shape; states are zero before update 1). Outputs per group: the new
   param, the new states, each in the memory of its old value. The states are in_names[3], in_names[4], …
   To add one: its file, its line in ops.def, its struct here when a backend has a kernel of its own for it. */
#ifndef CVY_OPS_OPTIMIZER_H
#define CVY_OPS_OPTIMIZER_H

#include "graph/op.h"

#include <stdbool.h>

enum {
    CVY_OPTIMIZER_PARAM,
    CVY_OPTIMIZER_GRAD,
    CVY_OPTIMIZER_STATE
}; /* within a group; first of the states */

struct cvy_sgd_attrs {
    double momentum, dampening, weight_decay;
    bool nesterov;
};

struct cvy_adam_attrs { /* of adamw and lamb, too */
    double beta1, beta2, eps, weight_decay;
};

struct cvy_lars_attrs {
    double momentum, dampening, weight_decay, trust_coefficient, eps;
    bool nesterov;
};

struct cvy_rmsprop_attrs {
    double momentum, alpha, eps, weight_decay;
};

/* What the step is multiplied by, from the norms of the parameter and of its gradient (lars) or step (lamb). */
double cvy_lars_ratio(const struct cvy_lars_attrs *attrs, double param_norm, double grad_norm);
double cvy_lamb_ratio(const struct cvy_adam_attrs *attrs, double param_norm, double step_norm);

/* The update of one parameter of n elements; in and out are its group. */
typedef void cvy_optimizer_update(const void *attrs, const double hyper[2], int64_t n,
                                  const double *const *in, double *const *out);

/* For `reference`: runs it for each parameter, in groups of n_in and n_out. */
void cvy_optimizer_reference(const struct cvy_reference *call, int n_in, int n_out,
                             cvy_optimizer_update *update);
/* For `cost`: so many operations for each element of the parameters. */
void cvy_optimizer_cost(const struct cvy_infer *call, double flops, struct cvy_cost *out);
/* For cases: hyper = {0.01, 7}; input k of each group is positive where `positive` has bit k. */
void cvy_optimizer_fill(int i, const struct cvy_desc *desc, uint64_t seed, int n_in, unsigned positive,
                        double *values);

#endif

/* Attributes of the optimisers, and the operands that all of them share.
   Inputs: hyper f32[2] {learning rate, number of this update from 1}, then one group per parameter: param,
   grad, states… (all of the parameter's shape; states are zero before update 1). Outputs per group: the new
   param, the new states, each in the memory of its old value. The states are in_names[3], in_names[4], …
   To add one: its file, its line in ops.def, its struct here only if somebody must fill it from C. */
#ifndef CVY_OPS_OPTIMIZER_H
#define CVY_OPS_OPTIMIZER_H

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

struct cvy_adamw_attrs {
    double beta1, beta2, eps, weight_decay;
};

#endif

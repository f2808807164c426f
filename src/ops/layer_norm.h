/* Attributes of layer_norm and its gradient. */
#ifndef CVY_OPS_LAYER_NORM_H
#define CVY_OPS_LAYER_NORM_H

struct cvy_layer_norm_attrs {
    double eps;
};

#endif

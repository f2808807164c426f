/* Attributes of constant, whose result is f32[1]. Autodiff seeds the loss's gradient with it. */
#ifndef CVY_OPS_CONSTANT_H
#define CVY_OPS_CONSTANT_H

struct cvy_constant_attrs {
    double value;
};

#endif

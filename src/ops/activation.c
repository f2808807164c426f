/* What activations share: their walks over the elements, and their cases. */
#include "ops/activation.h"
#include "ops/cases.h"

#include <math.h>

void cvy_activation_map(const struct cvy_reference *call, double (*f)(double)) {
    int64_t n = cvy_shape_count(&call->in_desc[0].shape);
    for (int64_t i = 0; i < n; i++)
        call->out[0][i] = f(call->in[0][i]);
}

void cvy_activation_scale(const struct cvy_reference *call, double (*slope)(double)) {
    int64_t n = cvy_shape_count(&call->in_desc[0].shape);
    for (int64_t i = 0; i < n; i++)
        call->out[0][i] = call->in[0][i] * slope(call->in[1][i]);
}

/* Wide enough to reach every piece of the piecewise ones, and away from their kinks at multiples of 3, where there is
   no derivative to compare with. */
static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    cvy_fill_normal(i, desc, seed, values);
    for (int64_t k = 0; k < cvy_shape_count(&desc->shape); k++) {
        double kink = 3 * rint(values[k]);
        values[k] *= 3;
        if (fabs(values[k] - kink) < 0.01)
            values[k] = kink + 0.01;
    }
}

const struct cvy_case cvy_activation_cases[CVY_ACTIVATION_CASES] = {
    {"", "f32[9]", 0, fill},
    {"", "f32[3,17]", 0, fill},
    {"", "f32[2,17,5,7]", 0, fill},
    {"", "f32[2,64,4,4]", 0, fill},
};

const struct cvy_case cvy_activation_backward_cases[CVY_ACTIVATION_CASES] = {
    {"", "f32[9] f32[9]", 0, fill},
    {"", "f32[3,17] f32[3,17]", 0, fill},
    {"", "f32[2,17,5,7] f32[2,17,5,7]", 0, fill},
    {"", "f32[2,64,4,4] f32[2,64,4,4]", 0, fill},
};

const struct cvy_alias cvy_activation_in_place[1] = {{0, 0}};

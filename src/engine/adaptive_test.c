/* Optimisers that look at whole parameters: the same bits in all strategies, on any number of devices and by programs
   from text; with norms clipped, too, and with groups of weight decay. */
#include "engine/session_matrix.h"

struct optimizer {
    const char *name, *attributes;
    double clip_grad_norm;
};

static void same_bits(void **state) {
    const struct optimizer *o = *state;
    uint64_t want = 0;
    double loss = 0;
    for (size_t i = 0; i < N_SETUPS; i++) {
        cvy_plan_options options = options_of(&setups[i], "cpu", 1);
        options.optimizer = o->name;
        options.optimizer_attributes = o->attributes;
        options.clip_grad_norm = o->clip_grad_norm;
        if (i == 0)
            want = train(&options, false, false, &loss);
        else
            check_bits(&setups[i], &options, want, loss);
    }
}

static const struct optimizer lars = {
    "lars", "weight_decay=0.0005 trust_coefficient=0.1 norm_weight_decay=0 bias_weight_decay=0", 0};
static const struct optimizer lamb = {"lamb", "weight_decay=0.01", 1};

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(same_bits, (void *)&lars),
        cmocka_unit_test_prestate(same_bits, (void *)&lamb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

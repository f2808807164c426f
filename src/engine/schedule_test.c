/* Learning-rate schedules against values worked out by hand from torch's formulas. */
#include "engine/schedule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct cvy_lr_schedule base(const char *kind) {
    return (struct cvy_lr_schedule){.kind = kind,
                                    .lr = 0.1,
                                    .step_size = 2,
                                    .gamma = 0.1,
                                    .warmup_decay = 0.01,
                                    .warmup_method = "linear",
                                    .n_epochs = 10,
                                    .updates_per_epoch = 10};
}

static void near(double got, double want) {
    if (!(fabs(got - want) <= 1e-12))
        fail_msg("got %.17g, want %.17g", got, want);
}

static void constant_stays(void **state) {
    (void)state;
    struct cvy_lr_schedule s = base("constant");
    near(cvy_lr_at(&s, 0), 0.1);
    near(cvy_lr_at(&s, 99), 0.1);
}

static void step_falls_every_two_epochs(void **state) {
    (void)state;
    struct cvy_lr_schedule s = base("steplr");
    near(cvy_lr_at(&s, 0), 0.1);
    near(cvy_lr_at(&s, 19), 0.1);
    near(cvy_lr_at(&s, 20), 0.01);
    near(cvy_lr_at(&s, 39), 0.01);
    near(cvy_lr_at(&s, 40), 0.001);
}

static void step_is_not_late_by_rounding(void **state) {
    (void)state;
    struct cvy_lr_schedule s = base("step");
    s.updates_per_epoch = 49; /* 1/49 has no exact double */
    s.step_size = 1;
    for (int e = 1; e < 10; e++)
        near(cvy_lr_at(&s, e * 49), 0.1 * pow(0.1, e));
}

static void cosine_passes_known_points(void **state) {
    (void)state;
    struct cvy_lr_schedule s = base("cosine");
    s.min_lr = 0.02;
    near(cvy_lr_at(&s, 0), 0.1);
    near(cvy_lr_at(&s, 25), 0.02 + 0.08 * (1 + sqrt(0.5)) / 2); /* a quarter: cos(pi/4) */
    near(cvy_lr_at(&s, 50), 0.06);                              /* half: the mean */
    near(cvy_lr_at(&s, 100), 0.02);
}

/* OneCycleLR(max_lr=0.1, total_steps=100): rises until update 29, ends at update 99. */
static void onecycle_passes_known_points(void **state) {
    (void)state;
    struct cvy_lr_schedule s = base("onecycle");
    near(cvy_lr_at(&s, 0), 0.004);
    near(cvy_lr_at(&s, 29), 0.1);
    near(cvy_lr_at(&s, 64), (0.1 + 4e-7) / 2); /* half way down */
    near(cvy_lr_at(&s, 99), 4e-7);
}

static void linear_warmup_then_schedule(void **state) {
    (void)state;
    struct cvy_lr_schedule s = base("cosine");
    s.warmup_epochs = 2;
    near(cvy_lr_at(&s, 0), 0.001);
    near(cvy_lr_at(&s, 10), 0.1 * (0.01 + 0.99 / 2));
    near(cvy_lr_at(&s, 20), 0.1);  /* the cosine begins here */
    near(cvy_lr_at(&s, 60), 0.05); /* and is half way 4 of its 8 epochs later */
}

static void constant_warmup_jumps(void **state) {
    (void)state;
    struct cvy_lr_schedule s = base("step");
    s.warmup_epochs = 1;
    s.warmup_method = "constant";
    near(cvy_lr_at(&s, 9), 0.001);
    near(cvy_lr_at(&s, 10), 0.1);
    near(cvy_lr_at(&s, 30), 0.01); /* steps count from the warm-up's end */
}

static void refuses(struct cvy_lr_schedule s, const char *names) {
    assert_int_equal(cvy_lr_check(&s), CVY_ERR_USAGE);
    assert_non_null(strstr(cvy_error(), names));
}

static void check_names_what_is_wrong(void **state) {
    (void)state;
    struct cvy_lr_schedule s = base("step");
    assert_int_equal(cvy_lr_check(&s), CVY_OK);
    s.lr = NAN;
    refuses(s, "--lr nan");
    s = base("step");
    s.min_lr = -1;
    refuses(s, "--lr-min -1");
    s = base("step");
    s.step_size = 0;
    refuses(s, "--lr-step-size");
    s = base("stair");
    refuses(s, "--lr-scheduler stair");
    s = base("onecycle");
    s.warmup_epochs = 1;
    refuses(s, "--lr-warmup-epochs");
    s = base("step");
    s.warmup_method = "exponential";
    refuses(s, "--lr-warmup-method exponential");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_stays),
        cmocka_unit_test(step_falls_every_two_epochs),
        cmocka_unit_test(step_is_not_late_by_rounding),
        cmocka_unit_test(cosine_passes_known_points),
        cmocka_unit_test(onecycle_passes_known_points),
        cmocka_unit_test(linear_warmup_then_schedule),
        cmocka_unit_test(constant_warmup_jumps),
        cmocka_unit_test(check_names_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

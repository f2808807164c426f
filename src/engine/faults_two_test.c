/* Two faults at once: both are found, what gains more comes first, and the second one's gain is what is left of it. */
#include "engine/made_profile.h"

#include <math.h>
#include <stdlib.h>

/* Takes `root`. first.gain and second.gain are as worked out by hand. */
static void expect(json_t *root, const char *const names[2], const double gains[2], double mended_us) {
    struct cvy_profile_file file = {0};
    struct cvy_verdicts found = {0};
    assert_int_equal(cvy_profile_file_read(root, "made", &file), CVY_OK);
    assert_int_equal(cvy_find_faults(&file, &found), CVY_OK);
    assert_int_equal(found.list.n, 2);
    for (int k = 0; k < 2; k++) {
        const struct cvy_verdict *v = &found.list.data[k];
        assert_string_equal(v->name, names[k]);
        if (fabs(v->gain - gains[k]) > 1e-6)
            fail_msg("%s gains %.9f, not %.9f", v->name, v->gain, gains[k]);
    }
    assert_true(found.list.data[0].alone == found.list.data[0].gain);
    assert_true(found.list.data[0].gain >= found.list.data[1].alone); /* else it would be the first */
    assert_true(fabs(found.mended_us - mended_us) < 1e-6 * mended_us);
    cvy_vec_free(&found.list);
    cvy_profile_file_free(&file);
}

/* The caller loads, and the second device needs twice the time of the first. A thread of its own hides the loading. */
static void images_and_a_slow_device(void **state) {
    (void)state;
    json_t *root = made_profile("ddp", 2);
    for (int d = 0; d < 2; d++) {
        json_t *device = made_device(root, 0, d, 1);
        made_passes(device, d, d ? 2000 : 1000);
        made_bucket(device, 0, 1e6, 0);
    }
    made_number(root, "workers", 0);
    made_times(root, 2000, 6001, 0);
    expect(root, (const char *[]){"slow device", "input-bound"},
           (const double[]){8001 / 5001.0, 5001 / 3001.0}, 3001);
}

/* Two shards, and a cut that gives one stage three times the work of the other. */
static void a_bubble_and_uneven_stages(void **state) {
    (void)state;
    json_t *root = made_profile("pipeline", 2);
    made_pipeline(root, 2, (const double[]){30, 90}, (const double[]){0.25, 0.75});
    const double span = 30 + 2 * 270 + 60, even = 60 + 2 * 180 + 120;
    made_times(root, 0, span, 0);
    expect(root, (const char *[]){"imbalanced stages", "pipeline bubble"},
           (const double[]){span / even, even / (360 + 180 / 4.0)}, 360 + 180 / 4.0);
}

/* Forty small buckets, and an update that takes longer than both passes; the set allows twice the batch. */
static void buckets_and_a_small_batch(void **state) {
    (void)state;
    json_t *root = made_profile("ddp", 2);
    for (int d = 0; d < 2; d++) {
        json_t *device = made_device(root, 0, d, 1);
        made_passes(device, d, 100);
        for (int b = 0; b < 40; b++)
            made_bucket(device, b, b % 2 ? 10 : 30, 100);
        made_update(device, 1400);
    }
    made_number(root, "bucket_mb", 0.001);
    made_number(root, "first_bucket_mb", 0.001);
    made_number(root, "images", 512);
    made_times(root, 0, 300 + 40 + 4000 + 1400, 0);
    const double span = 5740, merged = 300 + 1 + 100 + 1400;
    expect(root, (const char *[]){"communication-exposed", "small-batch overhead"},
           (const double[]){span / merged, merged * 2 / (300 * 2 + 1501.0)}, (300 * 2 + 1501.0) / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(images_and_a_slow_device),
                                       cmocka_unit_test(a_bubble_and_uneven_stages),
                                       cmocka_unit_test(buckets_and_a_small_batch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

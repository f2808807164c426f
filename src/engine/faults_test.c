/* Every verdict alone, from made-up profiles whose gains can be worked out by hand. Two at once: faults_two_test.c. */
#include "engine/made_profile.h"

#include <math.h>
#include <stdlib.h>

/* Takes `root`. */
static void look(json_t *root, struct cvy_verdicts *out) {
    struct cvy_profile_file file = {0};
    *out = (struct cvy_verdicts){0};
    assert_int_equal(cvy_profile_file_read(root, "made", &file), CVY_OK);
    assert_int_equal(cvy_find_faults(&file, out), CVY_OK);
    cvy_profile_file_free(&file);
}

static bool is_near(double a, double b) { return fabs(a - b) < 1e-6 * fabs(b); }

/* There is this verdict alone. Takes `root`. */
static void expect(json_t *root, const char *name, double gain, const char *flags) {
    struct cvy_verdicts found;
    look(root, &found);
    assert_int_equal(found.list.n, 1);
    assert_string_equal(found.list.data[0].name, name);
    assert_string_equal(found.list.data[0].flags, flags);
    if (!is_near(found.list.data[0].gain, gain))
        fail_msg("%s gains %.9f, not %.9f", name, found.list.data[0].gain, gain);
    assert_true(found.list.data[0].alone == found.list.data[0].gain);
    assert_true(found.list.data[0].cause[0] && found.list.data[0].advice[0]);
    cvy_vec_free(&found.list);
}

static json_t *one_device(double wait_us, double host_us) {
    json_t *root = made_profile("single", 1), *device = made_device(root, 0, 0, 1);
    made_passes(device, 0, 990);
    made_update(device, 30);
    made_operator(device, "conv2d", 800, 10);
    made_operator(device, "conv2d_backward_weights", 1500, 10);
    made_operator(device, "batch_norm", 200, 10);
    made_operator(device, "sgd", 30, 30);
    made_times(root, wait_us, 3000, host_us);
    return root;
}

static void nothing_is_wrong(void **state) {
    (void)state;
    struct cvy_verdicts found;
    look(one_device(10, 20), &found);
    assert_int_equal(found.list.n, 0);
    assert_true(found.is_timed);
    assert_true(is_near(found.compute_share, 2970.0 / 3030));
    assert_true(is_near(found.conv_share, 2300.0 / 2530));
    assert_true(is_near(found.mended_us, 3030));
}

static void steps_wait_for_images(void **state) {
    (void)state;
    json_t *root =
        one_device(3000, 0); /* the caller loads: half of the step, and one thread keeps up with the device */
    made_number(root, "workers", 0);
    made_number(root, "cores", 2);
    expect(root, "input-bound", 2, "--workers 1");

    root = one_device(6000, 0); /* one thread, always busy: 9000; three of them keep up */
    made_number(root, "workers", 1);
    expect(root, "input-bound", 3, "--workers 3");

    root = one_device(6000, 0); /* two threads, 18000 us of work, on the two of three cores that are left */
    made_number(root, "cores", 3);
    expect(root, "input-bound", 3, "");

    root = one_device(6000, 0); /* of devices with streams only that can be seen */
    assert_int_equal(json_object_set_new(root, "has_streams", json_true()), 0);
    made_number(root, "workers", 1);
    expect(root, "input-bound", 3, "--workers 3");
}

static json_t *replicas(const double us[2], double wait_us) {
    json_t *root = made_profile("ddp", 2);
    for (int d = 0; d < 2; d++) {
        json_t *device = made_device(root, 0, d, 1);
        made_passes(device, d, us[d]);
        made_bucket(device, 0, 1e6, wait_us);
        made_update(device, 9);
    }
    return root;
}

static void a_device_is_slow(void **state) {
    (void)state;
    json_t *root = replicas((const double[]){1000, 1500}, 10); /* alone the other would take 6000 */
    made_times(root, 0, 4520, 0);
    expect(root, "slow device", 4520 / (3000 + 1 + 10 + 9.0), "");
    root = replicas((const double[]){1000, 5000}, 10);
    made_times(root, 0, 15020, 0);
    expect(root, "slow device", 15020 / (6000 + 9.0), "--devices cpu:0");
    root = replicas((const double[]){1000, 1200}, 10); /* no reason to complain */
    made_times(root, 0, 3620, 0);
    struct cvy_verdicts found;
    look(root, &found);
    assert_int_equal(found.list.n, 0);

    root = made_profile("pipeline", 16); /* the cut is even, the times are not */
    made_pipeline(root, 16, (const double[]){100, 300}, (const double[]){0.5, 0.5});
    made_times(root, 0, 100 + 16 * 900 + 200, 0);
    expect(root, "slow device", 14700 / (100 + 16 * 300.0 + 200), "");
}

static void devices_talk(void **state) {
    (void)state;
    json_t *root =
        replicas((const double[]){100, 100}, 300); /* one bucket: twice 300 us of passes for once the talk */
    made_times(root, 0, 610, 0);
    expect(root, "communication-exposed", 610 * 4 / (1200 + 310.0), "--batch-size 256");

    root = made_profile("ddp", 2); /* 40 buckets: 10 us each, and 0.1 a byte */
    for (int d = 0; d < 2; d++) {
        json_t *device = made_device(root, 0, d, 1);
        made_passes(device, d, 200);
        for (int b = 0; b < 40; b++)
            made_bucket(device, b, b % 2 ? 10 : 30, b % 2 ? 11 : 13);
        made_update(device, 10);
    }
    made_number(root, "bucket_mb", 0.001);
    made_times(root, 0, 600 + 40 + 480 + 10, 0);
    expect(root, "communication-exposed", 1130 / (600 + 1 + 10 + 80 + 10.0),
           "--bucket-mb 25 --first-bucket-mb 1");
}

static void shards_are_uneven(void **state) {
    (void)state;
    json_t *root = made_profile("ddp", 3); /* one device has two of them */
    for (int d = 0; d < 2; d++) {
        json_t *device = made_device(root, 0, d, 1);
        for (int s = d; s < 1 + 2 * d; s++)
            made_passes(device, s, 100);
        made_bucket(device, 0, 1e6, 10);
        made_update(device, 9);
    }
    made_times(root, 0, 620, 0);
    expect(root, "uneven shards", 620 / 470.0, "--shards 4");
}

static void stages_differ(void **state) {
    (void)state;
    json_t *root = made_profile("pipeline", 32);
    made_pipeline(root, 32, (const double[]){150, 50}, (const double[]){0.75, 0.25});
    made_times(root, 0, 150 * 32 + 150 + 300 * 32,
               0); /* the second stage is done with the last shard 150 us later */
    struct cvy_verdicts found;
    look(root, &found);
    assert_int_equal(found.list.n, 1);
    assert_string_equal(found.list.data[0].name, "imbalanced stages");
    assert_string_equal(found.list.data[0].flags, "--strategy ddp --shards 32");
    assert_true(found.list.data[0].gain > 1.4 && found.list.data[0].gain < 1.5);
    cvy_vec_free(&found.list);

    root = made_profile("pipeline", 32);
    made_number(root, "device_memory", 1e6);
    made_pipeline(root, 32, (const double[]){50, 150}, (const double[]){0.25, 0.75});
    made_times(root, 0, 50 + 32 * 450 + 100, 0);
    expect(root, "imbalanced stages", 14550 / (100 + 32 * 300 + 200.0), "--device-memory 0");
}

static void stages_wait(void **state) {
    (void)state;
    json_t *root =
        made_profile("pipeline", 2); /* (2 + 1) 300 us of which 300 are the bubble: with 8 shards 75 */
    made_pipeline(root, 2, (const double[]){100, 100}, (const double[]){0.5, 0.5});
    made_times(root, 0, 900, 0);
    expect(root, "pipeline bubble", 900 / 675.0, "--shards 8");

    root = made_profile("mp", 2); /* one stage works at a time */
    for (int stage = 0; stage < 2; stage++) {
        json_t *device = made_device(root, stage, 0, 0.5);
        for (int s = 0; s < 2; s++) {
            if (stage == 1)
                made_instr(device, "recv", "forward", (const int[]){s, 0, -1}, 0);
            made_instr(device, "run", "forward", (const int[]){s, 0, -1}, 100);
            if (stage == 0) {
                made_instr(device, "send", "forward", (const int[]){s, 1, -1}, 0);
                made_instr(device, "recv", "backward", (const int[]){s, 1, -1}, 0);
            }
            made_instr(device, "run", "backward", (const int[]){s, 0, -1}, 200);
            if (stage == 1)
                made_instr(device, "send", "backward", (const int[]){s, 0, -1}, 0);
        }
    }
    made_times(root, 0, 1200, 0);
    expect(root, "pipeline bubble", 1200 / 675.0, "--strategy pipeline --shards 8");
}

static void a_batch_is_small(void **state) {
    (void)state;
    json_t *root = made_profile("single", 1), *device = made_device(root, 0, 0, 1);
    made_passes(device, 0, 100);
    made_update(device, 700);
    made_operator(device, "conv2d", 300, 3); /* a call takes at least the 1 us that a relu takes */
    made_operator(device, "relu", 3, 3);
    made_number(root, "batch_size", 2);
    made_times(root, 0, 1000, 0);
    /* 7 / 10 and a little do not grow: 32 times the batch leave less than a tenth of that */
    const double passes = 300 * (6 + 32 * 297.0) / 303;
    expect(root, "small-batch overhead", 32 * 1000 / (700 + passes), "--batch-size 64");

    root = made_profile("single", 1),
    device = made_device(root, 0, 0, 1); /* weights move, whatever the batch */
    made_passes(device, 0, 100);
    made_operator(device, "linear", 300, 3);
    made_number(root, "batch_size", 2);
    made_times(root, 0, 300, 0);
    expect(root, "small-batch overhead", 64 * 300 / 1200.0,
           "--batch-size 128"); /* from 32 images on they grow */

    root = made_profile("single", 1),
    device = made_device(root, 0, 0, 1); /* a small set has no larger batches */
    made_passes(device, 0, 100);
    made_update(device, 700);
    made_number(root, "images", 256);
    made_times(root, 0, 1000, 0);
    struct cvy_verdicts found;
    look(root, &found);
    assert_int_equal(found.list.n, 0);
}

/* Takes `root`. */
static void refused(json_t *root, const char *text) {
    struct cvy_profile_file file = {0};
    assert_int_equal(cvy_profile_file_read(root, "made", &file), CVY_ERR_DATA);
    if (!strstr(cvy_error(), text))
        fail_msg("\"%s\" does not say \"%s\"", cvy_error(), text);
    cvy_profile_file_free(&file);
}

static void what_is_no_profile_is_refused(void **state) {
    (void)state;
    refused(json_object(), "made: there is no number \"version\"");
    json_t *root = one_device(0, 0);
    made_number(root, "version", 2);
    refused(root, "made: its version is 2, this program reads version 1");
    root = one_device(0, 0);
    made_number(root, "step_us", -1);
    refused(root, "there is no number \"step_us\" of at least 0");
    root = made_profile("single", 1);
    made_times(root, 0, 0, 0);
    refused(root, "there are no devices in it");
    root = one_device(0, 0);
    made_instr(made_device(root, 0, 1, 1), "dance", "forward", (const int[]){0, 0, 0}, 1);
    refused(root, "instruction 0 is none that this version knows");
    root = one_device(0, 0);
    made_instr(made_device(root, 1, 0, 1), "recv", "forward", (const int[]){0, 0, -1}, 1);
    refused(root, "device 1 waits in instruction 0 (recv) for what no device does");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_wrong),
                                       cmocka_unit_test(steps_wait_for_images),
                                       cmocka_unit_test(a_device_is_slow),
                                       cmocka_unit_test(devices_talk),
                                       cmocka_unit_test(shards_are_uneven),
                                       cmocka_unit_test(stages_differ),
                                       cmocka_unit_test(stages_wait),
                                       cmocka_unit_test(a_batch_is_small),
                                       cmocka_unit_test(what_is_no_profile_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

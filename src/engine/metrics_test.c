/* metrics.jsonl: whole lines with the documented keys, appended; a full disk leaves no part of a line. */
#include "base/file.h"
#include "engine/metrics.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct cvy_step_report step = {.epoch = 2,
                                            .n_epochs = 3,
                                            .step = 1,
                                            .n_steps = 10,
                                            .lr = 0.05,
                                            .metrics = {.loss = 1.25, .n = 32, .top1 = 20, .top5 = 30},
                                            .images_per_s = 640};

static int new_path(void **state) {
    char *path = strdup("/tmp/convoy-metrics-XXXXXX");
    int fd = path ? mkstemp(path) : -1;
    *state = path;
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state) {
    int result = unlink(*state);
    free(*state);
    return result;
}

/* Line k (from 0) of the file as an object; the test frees it. */
static json_t *line(const char *path, int k) {
    char *text, *at;
    size_t n;
    assert_int_equal(cvy_read_file(path, 1 << 20, &text, &n), CVY_OK);
    assert_true(n > 0 && text[n - 1] == '\n');
    for (at = text; k > 0; k--) {
        at = strchr(at, '\n');
        assert_non_null(at);
        at++;
    }
    *strchr(at, '\n') = 0;
    json_t *object = json_loads(at, 0, NULL);
    assert_non_null(object);
    free(text);
    return object;
}

static double number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        fail_msg("no number %s", key);
    return json_number_value(value);
}

static void step_and_epoch_lines(void **state) {
    struct cvy_metrics_file *file;
    struct cvy_epoch_report epoch = {.epoch = 2,
                                     .train = {.n = 320, .top1 = 200, .top5 = 310, .loss_sum = 160},
                                     .val = {.n = 360, .top1 = 351, .top5 = 360, .loss_sum = 36},
                                     .train_s = 2};
    for (int i = 0; i < 2; i++) { /* opened twice: appends */
        assert_int_equal(cvy_metrics_open(*state, false, &file), CVY_OK);
        assert_int_equal(i ? cvy_metrics_epoch(file, &epoch) : cvy_metrics_step(file, &step), CVY_OK);
        cvy_metrics_close(file);
    }
    json_t *object = line(*state, 0);
    assert_string_equal(json_string_value(json_object_get(object, "event")), "step");
    assert_true(number(object, "update") == 21 && number(object, "loss") == 1.25);
    assert_true(number(object, "images") == 32 && number(object, "top1_count") == 20);
    json_decref(object);
    object = line(*state, 1);
    assert_string_equal(json_string_value(json_object_get(object, "event")), "epoch");
    assert_true(number(object, "val_top1") == 97.5 && number(object, "val_top1_count") == 351);
    assert_true(number(object, "val_loss") == 0.1 && number(object, "train_loss") == 0.5);
    assert_true(number(object, "images_per_s") == 160);
    json_decref(object);
}

/* Steps 0 and 1 of epoch 2, its end, step 0 of epoch 3, then half a line; n_left: lines that a cut leaves. */
static void assert_cut(const char *path, int64_t epoch, int64_t at_step, int n_left) {
    struct cvy_metrics_file *file;
    struct cvy_step_report report = step;
    const struct cvy_epoch_report end = {.epoch = 2};
    char *text;
    size_t n;
    int n_lines = 0;
    assert_int_equal(cvy_metrics_open(path, true, &file), CVY_OK);
    for (report.step = 0; report.step < 2; report.step++)
        assert_int_equal(cvy_metrics_step(file, &report), CVY_OK);
    assert_int_equal(cvy_metrics_epoch(file, &end), CVY_OK);
    report.epoch = 3;
    report.step = 0;
    assert_int_equal(cvy_metrics_step(file, &report), CVY_OK);
    FILE *more = fopen(path, "a");
    assert_true(more && fputs("{\"event\":\"st", more) >= 0 && fclose(more) == 0);
    assert_int_equal(cvy_metrics_cut(file, epoch, at_step), CVY_OK);
    assert_int_equal(cvy_metrics_step(file, &step), CVY_OK); /* goes on behind what is left */
    cvy_metrics_close(file);
    assert_int_equal(cvy_read_file(path, 1 << 20, &text, &n), CVY_OK);
    for (size_t i = 0; i < n; i++)
        n_lines += text[i] == '\n';
    assert_true(n > 0 && text[n - 1] == '\n');
    assert_int_equal(n_lines, n_left + 1);
    free(text);
}

static void cut_back_to_a_checkpoint(void **state) {
    assert_cut(*state, 0, 0, 0);
    assert_cut(*state, 2, 0, 0);
    assert_cut(*state, 2, 1, 1);
    assert_cut(*state, 2, 2, 2); /* after the epoch's last step, but not its end */
    assert_cut(*state, 3, 0, 3);
    assert_cut(*state, 3, 1, 4);
}

static void not_a_number_is_null(void **state) {
    struct cvy_metrics_file *file;
    struct cvy_step_report bad = step;
    bad.metrics.loss = NAN;
    assert_int_equal(cvy_metrics_open(*state, false, &file), CVY_OK);
    assert_int_equal(cvy_metrics_step(file, &bad), CVY_OK);
    cvy_metrics_close(file);
    json_t *object = line(*state, 0);
    assert_true(json_is_null(json_object_get(object, "loss")));
    json_decref(object);
}

static void full_disk_is_an_error(void **state) {
    (void)state;
    struct cvy_metrics_file *file;
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_int_equal(cvy_metrics_open("/dev/full", false, &file), CVY_OK);
    assert_int_equal(cvy_metrics_step(file, &step), CVY_ERR_IO);
    assert_non_null(strstr(cvy_error(), "/dev/full"));
    cvy_metrics_close(file);
}

static void unwritable_is_an_error(void **state) {
    (void)state;
    struct cvy_metrics_file *file;
    assert_int_equal(cvy_metrics_open("/proc/no/such/metrics.jsonl", false, &file), CVY_ERR_IO);
    assert_non_null(strstr(cvy_error(), "/proc/no/such/metrics.jsonl"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(step_and_epoch_lines, new_path, remove_path),
        cmocka_unit_test_setup_teardown(cut_back_to_a_checkpoint, new_path, remove_path),
        cmocka_unit_test_setup_teardown(not_a_number_is_null, new_path, remove_path),
        cmocka_unit_test(full_disk_is_an_error),
        cmocka_unit_test(unwritable_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

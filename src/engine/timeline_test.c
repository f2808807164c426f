/* The ring keeps the newest events, and the export says all of each. */
#include "engine/timeline.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { CAP = 4 };

static void add(struct cvy_timeline *timeline, int n) {
    for (int i = 0; i < n; i++) {
        const struct cvy_event event = {"conv2d", "l", CVY_PHASE_BACKWARD, i, -1, 1000 * i, 1000 * i + 500};
        cvy_timeline_add(timeline, &event);
    }
}

static void off_unless_opened(void **state) {
    (void)state;
    struct cvy_timeline timeline = {0};
    add(&timeline, 1);
    assert_null(cvy_timeline_get(&timeline, 0));
    cvy_timeline_close(&timeline);
}

static void newest_are_kept(void **state) {
    (void)state;
    struct cvy_timeline timeline;
    assert_int_equal(cvy_timeline_open(&timeline, CAP), CVY_OK);
    add(&timeline, 3);
    assert_int_equal(cvy_timeline_get(&timeline, 0)->shard, 0);
    assert_null(cvy_timeline_get(&timeline, 3));
    add(&timeline, 6); /* 9 in all, the last of them 2 to 5 */
    for (int i = 0; i < CAP; i++)
        assert_int_equal(cvy_timeline_get(&timeline, (size_t)i)->shard, 2 + i);
    assert_null(cvy_timeline_get(&timeline, CAP));
    cvy_timeline_clear(&timeline);
    assert_null(cvy_timeline_get(&timeline, 0));
    cvy_timeline_close(&timeline);
}

static const char *text_of(json_t *event, const char *key) {
    return json_string_value(json_object_get(event, key));
}

/* One operator, with a layer's name that is no UTF-8, and one instruction. */
static void events_are_exported(void **state) {
    (void)state;
    const struct cvy_event events[] = {
        {"conv2d", "lay\"er\xff", CVY_PHASE_BACKWARD, 3, -1, 5000, 7500},
        {"wait", NULL, CVY_PHASE_FORWARD, -1, 2, 7500, 7600},
    };
    struct cvy_timeline timeline;
    json_t *array = json_array();
    assert_int_equal(cvy_timeline_open(&timeline, CAP), CVY_OK);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        cvy_timeline_add(&timeline, &events[i]);
    assert_int_equal(cvy_timeline_export(&timeline, 1, "cpu:1", 7, 4000, array), CVY_OK);
    assert_int_equal(json_array_size(array), 3);
    assert_string_equal(text_of(json_object_get(json_array_get(array, 0), "args"), "name"), "cpu:1");

    json_t *op = json_array_get(array, 1), *args = json_object_get(op, "args");
    assert_string_equal(text_of(op, "name"), "conv2d");
    assert_string_equal(text_of(op, "cat"), "backward");
    assert_string_equal(text_of(op, "ph"), "X");
    assert_int_equal(json_integer_value(json_object_get(op, "tid")), 1);
    assert_true(json_real_value(json_object_get(op, "ts")) == 1);
    assert_true(json_real_value(json_object_get(op, "dur")) == 2.5);
    assert_int_equal(json_integer_value(json_object_get(args, "step")), 7);
    assert_int_equal(json_integer_value(json_object_get(args, "shard")), 3);
    assert_string_equal(text_of(args, "layer"), "lay\"er\\xFF");
    assert_null(json_object_get(args, "bucket"));

    json_t *wait = json_array_get(array, 2);
    args = json_object_get(wait, "args");
    assert_string_equal(text_of(wait, "cat"), "instruction");
    assert_int_equal(json_integer_value(json_object_get(args, "bucket")), 2);
    assert_null(json_object_get(args, "shard"));
    assert_null(json_object_get(args, "layer"));
    json_decref(array);
    cvy_timeline_close(&timeline);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(off_unless_opened), cmocka_unit_test(newest_are_kept),
                                       cmocka_unit_test(events_are_exported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The ring keeps the newest events, and the export says all of each. */
#include "engine/event_kind.h"

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
    assert_int_equal(cvy_timeline_name(0, 1, "cpu:1", array), CVY_OK);
    assert_int_equal(cvy_timeline_export(&timeline, &(struct cvy_track){0, 1, 2}, 7, 4000, array), CVY_OK);
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
    assert_string_equal(text_of(args, "kind"), "backward");
    assert_int_equal(json_integer_value(json_object_get(args, "shard")), 3);
    assert_string_equal(text_of(args, "layer"), "lay\"er\\xFF");
    assert_null(json_object_get(args, "bucket"));

    json_t *wait = json_array_get(array, 2);
    args = json_object_get(wait, "args");
    assert_string_equal(text_of(wait, "cat"), "instruction");
    assert_int_equal(json_integer_value(json_object_get(wait, "tid")), 2); /* it talks with other devices */
    assert_string_equal(text_of(args, "kind"), "reduce");
    assert_int_equal(json_integer_value(json_object_get(args, "bucket")), 2);
    assert_null(json_object_get(args, "shard"));
    assert_null(json_object_get(args, "layer"));
    json_decref(array);
    cvy_timeline_close(&timeline);
}

/* Whatever an instruction is called in events, its kind is its own; a graph has its phase's. */
static void kinds_follow_names(void **state) {
    (void)state;
    for (int i = 0; i < CVY_N_INSTR; i++) {
        const enum cvy_instr_kind kind = (enum cvy_instr_kind)i;
        const struct cvy_event event = {cvy_instr_name(kind), NULL, CVY_PHASE_BACKWARD, 0, 0, 0, 1};
        assert_int_equal(cvy_kind_of_event(&event), cvy_kind_of_instr(kind, CVY_PHASE_BACKWARD));
    }
    const struct cvy_event graph = {"graph", NULL, CVY_PHASE_BACKWARD, 0, 0, 0, 1};
    assert_int_equal(cvy_kind_of_event(&graph), CVY_KIND_BACKWARD);
    assert_int_equal(cvy_kind_of_instr(CVY_I_WAIT, CVY_PHASE_FORWARD), CVY_KIND_REDUCE);
    assert_int_equal(cvy_kind_of_instr(CVY_I_RUN, CVY_PHASE_FORWARD), CVY_KIND_FORWARD);
}

/* The newest steps are kept, each with its begin and the ends of its instructions. */
static void spans_are_kept(void **state) {
    (void)state;
    struct cvy_spans spans = {0};
    assert_null(cvy_spans_begin(&spans)); /* off */
    assert_int_equal(cvy_spans_open(&spans, 2, 3), CVY_OK);
    assert_null(cvy_spans_begin(&spans)); /* not on yet */
    spans.is_on = true;
    for (int64_t step = 0; step < 5; step++) {
        int64_t *at = cvy_spans_begin(&spans);
        for (int64_t k = 0; k < 3; k++)
            at[k] = 10 * step + k;
    }
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(cvy_spans_get(&spans, (size_t)i)[0], 10 * (2 + i));
        assert_int_equal(cvy_spans_get(&spans, (size_t)i)[2], 10 * (2 + i) + 2);
    }
    assert_null(cvy_spans_get(&spans, 3));
    cvy_spans_close(&spans);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kinds_follow_names), cmocka_unit_test(spans_are_kept),
                                       cmocka_unit_test(off_unless_opened), cmocka_unit_test(newest_are_kept),
                                       cmocka_unit_test(events_are_exported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Replays of made-up steps, whose times can be worked out by hand. */
#include "engine/replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void add(struct cvy_replay *r, int device, struct cvy_replay_instr instr) {
    assert_int_equal(cvy_vec_push(&r->devices.data[device].instrs, instr), CVY_OK);
}

static void add_device(struct cvy_replay *r, int stage, int replica) {
    struct cvy_replay_device device = {.stage = stage, .replica = replica};
    assert_int_equal(cvy_vec_push(&r->devices, device), CVY_OK);
    r->n_stages = stage >= r->n_stages ? stage + 1 : r->n_stages;
}

static struct cvy_replay_instr run(int shard, double us) {
    return (struct cvy_replay_instr){.kind = CVY_I_RUN, .shard = shard, .own_us = us};
}

/* Between stages: `part` is the other one. */
static struct cvy_replay_instr message(enum cvy_instr_kind kind, int shard, int part, double us) {
    return (struct cvy_replay_instr){.kind = kind, .shard = shard, .part = part, .own_us = us};
}

static struct cvy_replay_instr bucket(enum cvy_instr_kind kind, int number, double us) {
    return (struct cvy_replay_instr){.kind = kind, .bucket = number, .own_us = us};
}

static double span(const struct cvy_replay *r) {
    struct cvy_replay_result result = {0};
    assert_int_equal(cvy_replay_run(r, &result), CVY_OK);
    double us = result.span_us;
    cvy_replay_result_free(&result);
    return us;
}

/* Two replicas compute 100 and 160 us and then add a bucket: the quicker one waits. */
static void make_replicas(struct cvy_replay *r) {
    for (int d = 0; d < 2; d++) {
        add_device(r, 0, d);
        add(r, d, run(d, d ? 160 : 100));
        add(r, d, bucket(CVY_I_REDUCE, 0, 5));
        add(r, d, run(d, d ? 10 : 30));
        add(r, d, bucket(CVY_I_WAIT, 0, 20));
    }
}

static void replicas_meet(void **state) {
    (void)state;
    struct cvy_replay r = {0};
    make_replicas(&r);
    assert_int_equal(cvy_replay_link(&r), CVY_OK);
    assert_true(span(&r) == 160 + 5 + 10 + 20); /* both stand in the wait at 135 and 175 */
    r.is_between_processes = true;              /* both have handed in at 105 and 165 */
    assert_int_equal(cvy_replay_link(&r), CVY_OK);
    assert_true(span(&r) == 175 + 20);
    r.devices.data[0].instrs.data[2].own_us = 100; /* ready at 205, later than the other's 165 */
    assert_true(span(&r) == 205 + 20);
    cvy_replay_free(&r);
}

/* Two stages, shards of 10 and 30 us: the second stage is never idle once it has begun. */
static void a_pipeline_fills(void **state) {
    (void)state;
    struct cvy_replay r = {0};
    for (int s = 0; s < 2; s++)
        add_device(&r, s, 0);
    for (int k = 0; k < 3; k++) {
        add(&r, 0, run(k, 10));
        add(&r, 0, message(CVY_I_SEND, k, 1, 1));
        add(&r, 1, message(CVY_I_RECV, k, 0, 2));
        add(&r, 1, run(k, 30));
    }
    add(&r, 0, message(CVY_I_CHECK, -1, -1, 0)); /* all stages hear the loss */
    add(&r, 1, message(CVY_I_CHECK, -1, -1, 0));
    add(&r, 0, run(0, 7));
    assert_int_equal(cvy_replay_link(&r), CVY_OK);
    assert_true(span(&r) == 11 + 3 * 32 + 7);
    struct cvy_replay_result result = {0};
    assert_int_equal(cvy_replay_run(&r, &result), CVY_OK);
    assert_true(result.busy_us.data[0] == 33 + 7);
    assert_true(result.busy_us.data[1] == 96);
    cvy_replay_result_free(&result);

    struct cvy_replay copy;
    assert_int_equal(cvy_replay_copy(&r, &copy), CVY_OK);
    copy.devices.data[1].instrs.data[1].own_us = 0;
    assert_true(span(&copy) == 22 + 2 * 32 + 7); /* now it waits for the second shard */
    assert_true(span(&r) == 11 + 3 * 32 + 7);
    cvy_replay_free(&copy);
    cvy_replay_free(&r);
}

/* From when instructions ended to what each took by itself, and back. */
static void own_times_leave_waiting_out(void **state) {
    (void)state;
    struct cvy_replay r = {0};
    make_replicas(&r);
    for (int d = 0; d < 2; d++) {
        for (int k = 0; k < 4; k++)
            r.devices.data[d].instrs.data[k].own_us = 0;
    }
    assert_int_equal(cvy_replay_link(&r), CVY_OK);
    const int64_t first[] = {0, 100000, 105000, 135000, 195000},
                  second[] = {0, 160000, 165000, 175000, 195000};
    const int64_t *const ends[] = {first, second};
    assert_int_equal(cvy_replay_add_own(&r, ends), CVY_OK);
    assert_true(r.devices.data[0].instrs.data[3].own_us == 20); /* of 60 it waited 40 */
    assert_true(r.devices.data[1].instrs.data[3].own_us == 20);
    assert_true(r.devices.data[0].instrs.data[2].own_us == 30);
    assert_true(span(&r) == 195);
    assert_int_equal(cvy_replay_add_own(&r, ends), CVY_OK); /* sums */
    assert_true(span(&r) == 2 * 195);
    cvy_replay_free(&r);
}

/* What cannot be replayed is said: a recv without a send, two that wait for each other. */
static void what_never_ends_is_refused(void **state) {
    (void)state;
    struct cvy_replay r = {0};
    add_device(&r, 0, 0);
    add_device(&r, 1, 0);
    add(&r, 1, message(CVY_I_RECV, 0, 0, 1));
    assert_int_equal(cvy_replay_link(&r), CVY_ERR_DATA);
    add(&r, 0, message(CVY_I_RECV, 1, 1, 1));
    add(&r, 0, message(CVY_I_SEND, 0, 1, 1));
    add(&r, 1, message(CVY_I_SEND, 1, 0, 1));
    assert_int_equal(cvy_replay_link(&r), CVY_OK);
    struct cvy_replay_result result = {0};
    assert_int_equal(cvy_replay_run(&r, &result), CVY_ERR_DATA);
    cvy_replay_result_free(&result);
    cvy_replay_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(replicas_meet), cmocka_unit_test(a_pipeline_fills),
                                       cmocka_unit_test(own_times_leave_waiting_out),
                                       cmocka_unit_test(what_never_ends_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The control connection between "processes" that are threads of this one: meeting, giving up, parting.
   control_door_test.c is about who is let in; control_loss_test.c kills and stops real processes. */
#include "comm/control_processes.h"

static const double timeout_s = 1.0;

/* ---- processes that are threads ------------------------------------------------------------------------ */

struct run {
    char address[CVY_CONTROL_ADDRESS];
    struct process process[MAX_RANKS];
};

/* Starts those of the ranks that are in the mask; rank 0 is always there. */
static void start_some(struct run *run, int size, unsigned mask) {
    pthread_t threads[MAX_RANKS];
    struct job jobs[MAX_RANKS];
    memset(run, 0, sizeof *run);
    for (int r = 0; r < size; r++) {
        run->process[r].rank = r;
        run->process[r].size = size;
    }
    assert_ok(cvy_control_listen(size, timeout_s, run->address, &run->process[0].control));
    for (int r = 0; r < size; r++) {
        jobs[r] = (struct job){&run->process[r], timeout_s, run->address};
        if (mask & 1u << r)
            assert_ok(cvy_thread_start(&threads[r], "rank", begin_main, &jobs[r]));
    }
    for (int r = 0; r < size; r++) {
        if (mask & 1u << r)
            pthread_join(threads[r], NULL);
    }
}

static void start_all(struct run *run, int size) {
    start_some(run, size, (1u << size) - 1);
    for (int r = 0; r < size; r++) {
        if (run->process[r].error.code != CVY_OK)
            fail_msg("rank %d of %d: %s", r, size, run->process[r].error.message);
    }
}

static void *close_main(void *argument) {
    cvy_control_close(((struct process *)argument)->control);
    return NULL;
}

/* All leave at the same time. */
static void close_all(struct run *run, int size) {
    pthread_t threads[MAX_RANKS];
    for (int r = 0; r < size; r++)
        assert_ok(cvy_thread_start(&threads[r], "rank", close_main, &run->process[r]));
    for (int r = 0; r < size; r++)
        pthread_join(threads[r], NULL);
}

static void assert_heard(struct process *me, int n, int32_t group, const char *part) {
    if (!heard(me, n))
        fail_msg("rank %d was told %d events, not %d: no \"%s\"", me->rank, n_heard(me), n, part);
    assert_int_equal(me->ears.group[n - 1], group);
    if (!strstr(me->ears.reason[n - 1], part))
        fail_msg("rank %d was told \"%s\", without \"%s\"", me->rank, me->ears.reason[n - 1], part);
}

static void test_all_come_and_leave(void **state) {
    (void)state;
    for (int size = 1; size <= MAX_RANKS; size++) {
        struct run run;
        start_all(&run, size);
        if (size == 3) /* longer than any silence that counts */
            pause_s(2 * timeout_s);
        int64_t start = cvy_now_ns();
        close_all(&run, size);
        assert_true(cvy_now_ns() - start < 900000000); /* by goodbyes, not by the deadline */
        for (int r = 0; r < size; r++)
            assert_int_equal(n_heard(&run.process[r]), 0);
    }
    cvy_control_close(NULL);
}

/* Rank 0 waits for the last; the others leave when they like, and that is no loss. */
static void test_goodbye(void **state) {
    (void)state;
    struct run run;
    pthread_t closing;
    start_all(&run, 3);
    cvy_control_close(run.process[2].control);
    assert_ok(cvy_thread_start(&closing, "rank", close_main, &run.process[0]));
    pause_s(0.3);
    assert_int_equal(n_heard(&run.process[0]) + n_heard(&run.process[1]), 0);
    cvy_control_close(run.process[1].control);
    pthread_join(closing, NULL);
    assert_int_equal(n_heard(&run.process[0]) + n_heard(&run.process[1]), 0);
}

/* The deadline of rank 0's goodbye: rank 1 never says its own. */
static void test_goodbye_deadline(void **state) {
    (void)state;
    struct run run;
    start_all(&run, 2);
    int64_t start = cvy_now_ns();
    cvy_control_close(run.process[0].control);
    double took_s = (double)(cvy_now_ns() - start) * 1e-9;
    assert_true(took_s > 0.9 * timeout_s && took_s < 5 * timeout_s);
    cvy_control_close(run.process[1].control);
    assert_int_equal(n_heard(&run.process[1]), 0); /* rank 0 had said goodbye */
}

static void test_missing(void **state) {
    (void)state;
    struct run run;
    start_some(&run, 5, 1 | 1 << 1 | 1 << 3);
    for (int r = 0; r < 5; r++) {
        if (r == 2 || r == 4)
            continue;
        struct process *me = &run.process[r];
        assert_int_equal(me->error.code, CVY_ERR_LOST);
        if (!strstr(me->error.message, "rank 2, 4 did not come within 1.0 s"))
            fail_msg("rank %d: \"%s\"", r, me->error.message);
        assert_int_equal(n_heard(me), 0);
        cvy_control_close(me->control);
    }
}

static void test_abandon_group(void **state) {
    (void)state;
    struct run run;
    start_all(&run, 4);
    struct process *p = run.process;
    cvy_control_abandon(p[2].control, 7, "rank 2: bucket 3:\nno memory");
    for (int r = 0; r < 4; r++) {
        if (r != 2)
            assert_heard(&p[r], 1, 7, "rank 2: bucket 3: no memory");
    }
    cvy_control_abandon(p[0].control, 7, "again");  /* the first counts */
    cvy_control_abandon(p[0].control, 8, "rank 0"); /* another group */
    for (int r = 1; r < 4; r++)
        assert_heard(&p[r], r == 2 ? 1 : 2, 8, "rank 0");
    cvy_control_abandon(p[1].control, -1, "the whole run"); /* and the run still can be */
    for (int r = 0; r < 4; r++) {
        if (r != 1)
            assert_heard(&p[r], r == 3 ? 3 : 2, -1, "the whole run");
    }
    assert_int_equal(n_heard(&p[1]), 2);
    close_all(&run, 4);
}

static void test_abandon_run(void **state) {
    (void)state;
    for (int culprit = 0; culprit < 3; culprit++) {
        struct run run;
        char reason[2000] = "caf\xC3\xA9 ";
        start_all(&run, 3);
        memset(reason + 6, 'x', 893); /* 899 bytes, then a character of two: it is left out */
        strcpy(reason + 899, "\xC3\xA9 and more");
        cvy_control_abandon(run.process[culprit].control, -1, reason);
        cvy_control_abandon(run.process[culprit].control, -1, "a second reason");
        for (int r = 0; r < 3; r++) {
            if (r == culprit)
                continue;
            assert_heard(&run.process[r], 1, -1, "caf\xC3\xA9 xxx");
            assert_int_equal(strlen(run.process[r].ears.reason[0]), 899);
        }
        cvy_control_close(run.process[culprit].control); /* no loss: it had said so */
        pause_s(0.2);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(n_heard(&run.process[r]), r == culprit ? 0 : 1);
            if (r != culprit)
                cvy_control_close(run.process[r].control);
        }
    }
}

/* Two give up at once: every process hears of one at most, and none hears nothing. */
static void test_abandon_race(void **state) {
    (void)state;
    for (int round = 0; round < 10; round++) {
        struct run run;
        start_all(&run, 4);
        cvy_control_abandon(run.process[1].control, -1, "one");
        cvy_control_abandon(run.process[2].control, -1, "two");
        assert_true(heard(&run.process[0], 1) && heard(&run.process[3], 1));
        assert_string_equal(run.process[0].ears.reason[0], run.process[3].ears.reason[0]);
        close_all(&run, 4);
        for (int r = 0; r < 4; r++)
            assert_true(n_heard(&run.process[r]) <= 1);
    }
}

/* One gives up between connecting and starting: the others' start says why, at once. */
static void test_abandon_before_start(void **state) {
    (void)state;
    struct process root = {.size = 2}, other = {.rank = 1, .size = 2};
    char address[CVY_CONTROL_ADDRESS];
    assert_ok(cvy_control_listen(2, timeout_s, address, &root.control));
    assert_ok(cvy_control_connect(1, 2, timeout_s, address, &other.control));
    cvy_control_abandon(other.control, -1, "rank 1: no such model");
    cvy_control_close(other.control);
    assert_fails(begin(&root, timeout_s, NULL), CVY_ERR_LOST, "rank 1: no such model");
    assert_fails(cvy_control_connect(1, 2, timeout_s, address, &other.control), CVY_ERR_LOST,
                 "no such model");
    assert_int_equal(n_heard(&root), 0);
    cvy_control_close(root.control);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_come_and_leave), cmocka_unit_test(test_goodbye),
        cmocka_unit_test(test_goodbye_deadline),   cmocka_unit_test(test_missing),
        cmocka_unit_test(test_abandon_group),      cmocka_unit_test(test_abandon_run),
        cmocka_unit_test(test_abandon_race),       cmocka_unit_test(test_abandon_before_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

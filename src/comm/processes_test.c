/* Everything of the transport `mpi` but MPI: the suite for all transports with several worlds in one process, in shared
   memory and without; then what happens when processes part, fail or are late. */
#include "comm/loop_network.h"
#include "comm/party.h"
#include "comm/transport_conformance.h"

#include <stdatomic.h>

extern const struct cvy_transport cvy_transport_mpi;

static const cvy_log_sink none;

/* ---- worlds ---------------------------------------------------------------------------------------------- */

struct world_thread {
    pthread_t thread;
    double timeout_s;
    struct cvy_world *world;
    const char *reason;
    struct cvy_error error;
};

static void *join_main(void *argument) {
    struct world_thread *me = argument;
    cvy_error_save(&me->error,
                   cvy_processes_join(&cvy_transport_mpi, &loop_network, me->timeout_s, &none, &me->world));
    return NULL;
}

static void *leave_main(void *argument) {
    struct world_thread *me = argument;
    cvy_error_save(&me->error, cvy_processes_leave(me->world, me->reason));
    return NULL;
}

static void run_all(struct world_thread *worlds, int n, void *(*main)(void *)) {
    for (int i = 0; i < n; i++)
        assert_ok(cvy_thread_start(&worlds[i].thread, "process", main, &worlds[i]));
    for (int i = 0; i < n; i++)
        pthread_join(worlds[i].thread, NULL);
}

/* Joined worlds, by rank. */
static void join_worlds(int n, double timeout_s, struct cvy_world **out) {
    struct world_thread worlds[LOOP_MOST] = {0};
    loop_reset(n);
    for (int i = 0; i < n; i++)
        worlds[i].timeout_s = timeout_s;
    run_all(worlds, n, join_main);
    for (int i = 0; i < n; i++) {
        if (worlds[i].error.code != CVY_OK)
            fail_msg("a process cannot join: %s", worlds[i].error.message);
        out[worlds[i].world->rank] = worlds[i].world;
    }
}

static void leave_worlds(int n, struct cvy_world **all) {
    struct world_thread worlds[LOOP_MOST] = {0};
    for (int i = 0; i < n; i++)
        worlds[i].world = all[i];
    run_all(worlds, n, leave_main);
    for (int i = 0; i < n; i++) {
        if (worlds[i].error.code != CVY_OK)
            fail_msg("rank %d cannot leave: %s", i, worlds[i].error.message);
    }
}

/* A group with one member in each world. */
static void open_everywhere(struct cvy_world **worlds, int n, double timeout_s, struct cvy_group **members) {
    int32_t process[LOOP_MOST];
    for (int i = 0; i < n; i++)
        process[i] = i;
    for (int i = 0; i < n; i++) {
        struct cvy_group *here[LOOP_MOST];
        struct cvy_group_spec spec = {.world = worlds[i], .n = n, .process = process, .timeout_s = timeout_s};
        assert_ok(cvy_transport_mpi.open(&spec, here));
        for (int m = 0; m < n; m++)
            assert_true((here[m] != NULL) == (m == i));
        members[i] = here[i];
    }
}

/* ---- the suite ------------------------------------------------------------------------------------------- */

static int run_suite(int n_worlds) {
    _Alignas(64) unsigned char shared[SHARED_BYTES];
    struct suite suite = {.transport = &cvy_transport_mpi, .n_worlds = n_worlds, .shared = shared};
    join_worlds(n_worlds, 60, suite.worlds);
    int n_failed = transport_conformance(&suite);
    leave_worlds(n_worlds, suite.worlds);
    return n_failed;
}

/* ---- joining and parting ------------------------------------------------------------------------------------ */

static void test_neighbours(void **state) {
    (void)state;
    struct cvy_world *worlds[3];
    join_worlds(3, 10, worlds);
    for (int i = 0; i < 3; i++) { /* one process: all have the same cores */
        assert_int_equal(worlds[i]->rank, i);
        assert_int_equal(worlds[i]->size, 3);
        assert_int_equal(worlds[i]->core_rank, i);
        assert_int_equal(worlds[i]->core_size, 3);
    }
    leave_worlds(3, worlds);
}

struct waiting {
    struct cvy_group *group;
    struct cvy_error error;
    double took_s;
};

static void *wait_main(void *argument) {
    struct waiting *me = argument;
    int64_t start = cvy_now_ns();
    cvy_error_save(&me->error, cvy_transport_mpi.barrier(me->group, "bucket 3"));
    me->took_s = (double)(cvy_now_ns() - start) * 1e-9;
    return NULL;
}

static void assert_ended(const struct waiting *waiting, const char *reason) {
    if (waiting->error.code != CVY_ERR_LOST || !strstr(waiting->error.message, reason) ||
        !strstr(waiting->error.message, "bucket 3"))
        fail_msg("status %d, '%s' without '%s'", waiting->error.code, waiting->error.message, reason);
    assert_true(waiting->took_s < 5);
}

/* Rank 2 gives up the run: the others' waits end, and they have to give up too. */
static void test_giving_up_ends_all(void **state) {
    (void)state;
    struct cvy_world *worlds[3];
    struct cvy_group *members[3], *late[3];
    pthread_t threads[2];
    struct waiting waiting[2];
    join_worlds(3, 60, worlds);
    open_everywhere(worlds, 3, 60, members);
    for (int i = 0; i < 2; i++) {
        waiting[i] = (struct waiting){.group = members[i]};
        assert_ok(cvy_thread_start(&threads[i], "waiting", wait_main, &waiting[i]));
    }
    sleep_ms(50);
    cvy_transport_mpi.close(1, &members[2]);
    assert_ok(cvy_processes_leave(worlds[2], "rank 2: no space left on device"));
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_ended(&waiting[i], "rank 2: no space left on device");
        cvy_transport_mpi.close(1, &members[i]);
    }
    for (int i = 0; i < 2; i++) { /* what is opened later is lost as well */
        int32_t process[] = {0, 1, 2};
        struct cvy_group_spec spec = {.world = worlds[i], .n = 3, .process = process, .timeout_s = 60};
        assert_ok(cvy_transport_mpi.open(&spec, late));
        assert_fails(cvy_transport_mpi.barrier(late[i], "later"), CVY_ERR_LOST, "no space left");
        cvy_transport_mpi.close(3, late);
        assert_ok(cvy_processes_leave(worlds[i], "rank 2 gave up"));
    }
}

static void test_leaving_alone_is_an_error(void **state) {
    (void)state;
    struct cvy_world *worlds[2];
    join_worlds(2, 1, worlds);
    assert_fails(cvy_processes_leave(worlds[0], NULL), CVY_ERR_LOST, "for rank 1 to end");
    assert_ok(cvy_processes_leave(worlds[1], "rank 0 left"));
}

static void test_nobody_else_starts(void **state) {
    (void)state;
    struct world_thread worlds[2] = {{.timeout_s = 0.3}, {.timeout_s = 0.3}};
    loop_reset(2);
    loop.never_exchange = true;
    run_all(worlds, 2, join_main);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(worlds[i].error.code, CVY_ERR_LOST);
        assert_non_null(strstr(worlds[i].error.message, "exchange their addresses"));
    }
}

static void test_broken_network_is_said(void **state) {
    (void)state;
    struct cvy_world *worlds[2];
    struct cvy_group *members[2];
    pthread_t threads[2];
    struct waiting waiting[2];
    join_worlds(2, 60, worlds);
    open_everywhere(worlds, 2, 60, members);
    pthread_mutex_lock(&loop.lock);
    loop.broken = 1;
    pthread_mutex_unlock(&loop.lock);
    for (int i = 0; i < 2; i++) {
        waiting[i] = (struct waiting){.group = members[i]};
        assert_ok(cvy_thread_start(&threads[i], "waiting", wait_main, &waiting[i]));
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_ended(&waiting[i], "the cable of rank 1 is broken");
        cvy_transport_mpi.close(1, &members[i]);
    }
    for (int i = 0; i < 2; i++)
        assert_ok(cvy_processes_leave(worlds[i], "broken"));
}

/* ---- groups ---------------------------------------------------------------------------------------------- */

/* Every second group is without members here: the numbers agree all the same. */
static void test_groups_of_others(void **state) {
    (void)state;
    struct cvy_world *worlds[3];
    struct cvy_group *here[2], *members[2];
    pthread_t threads[2];
    join_worlds(3, 60, worlds);
    for (int round = 0; round < 6; round++) {
        int32_t process[] = {round % 2, 2};
        struct waiting waiting[2];
        for (int i = 0; i < 3; i++) {
            struct cvy_group_spec spec = {.world = worlds[i], .n = 2, .process = process, .timeout_s = 60};
            assert_ok(cvy_transport_mpi.open(&spec, here));
            for (int m = 0; m < 2; m++) {
                assert_true((here[m] != NULL) == (process[m] == i));
                members[m] = here[m] ? here[m] : members[m];
            }
        }
        for (int m = 0; m < 2; m++) {
            waiting[m] = (struct waiting){.group = members[m]};
            assert_ok(cvy_thread_start(&threads[m], "waiting", wait_main, &waiting[m]));
        }
        for (int m = 0; m < 2; m++) {
            pthread_join(threads[m], NULL);
            if (waiting[m].error.code != CVY_OK)
                fail_msg("member %d: %s", m, waiting[m].error.message);
            cvy_transport_mpi.close(1, &members[m]);
        }
    }
    leave_worlds(3, worlds);
}

static void test_given_up_before_it_is_opened(void **state) {
    (void)state;
    struct cvy_world *worlds[2];
    struct cvy_group *here[2], *there[2];
    int32_t process[] = {0, 1};
    join_worlds(2, 60, worlds);
    struct cvy_group_spec spec = {.world = worlds[0], .n = 2, .process = process, .timeout_s = 60};
    assert_ok(cvy_transport_mpi.open(&spec, here));
    cvy_transport_mpi.abort(here[0], "changed my mind");
    sleep_ms(200);
    spec.world = worlds[1];
    assert_ok(cvy_transport_mpi.open(&spec, there));
    assert_fails(cvy_transport_mpi.barrier(there[1], "start"), CVY_ERR_LOST, "changed my mind");
    assert_string_equal(cvy_transport_mpi.abort_reason(there[1]), "changed my mind");
    cvy_transport_mpi.close(2, here);
    cvy_transport_mpi.close(2, there);
    leave_worlds(2, worlds); /* a group that ended so ends no run */
}

static void test_wrong_groups(void **state) {
    (void)state;
    struct cvy_world *worlds[2];
    struct cvy_group *here[2];
    int32_t falling[] = {1, 0}, beyond[] = {0, 2};
    join_worlds(2, 60, worlds);
    struct cvy_group_spec spec = {.world = worlds[0], .n = 2, .process = falling, .timeout_s = 60};
    assert_int_equal(cvy_transport_mpi.open(&spec, here), CVY_ERR_USAGE);
    spec.process = beyond;
    assert_int_equal(cvy_transport_mpi.open(&spec, here), CVY_ERR_USAGE);
    leave_worlds(2, worlds);
}

/* Sums are made while nobody waits for them: that is how they hide behind the backward pass. */
static void test_sums_move_by_themselves(void **state) {
    (void)state;
    enum { N = 5000, N_SUMS = 20 };
    static float memory[2][N_SUMS][N];
    static struct cvy_reduction what[2][N_SUMS];
    static float *mine[2][N_SUMS];
    const struct cvy_partial partials[2] = {{.first = 0, .device = 0}, {.first = 1, .device = 1}};
    struct cvy_world *worlds[2];
    struct cvy_group *members[2];
    join_worlds(2, 60, worlds);
    open_everywhere(worlds, 2, 60, members);
    for (int m = 0; m < 2; m++) {
        for (int s = 0; s < N_SUMS; s++) {
            for (int i = 0; i < N; i++)
                memory[m][s][i] = (float)(m + s);
            mine[m][s] = memory[m][s];
            what[m][s] = (struct cvy_reduction){.name = "bucket",
                                                .n = N,
                                                .n_shards = 2,
                                                .n_partials = 2,
                                                .partials = partials,
                                                .mine = &mine[m][s],
                                                .result = memory[m][s]};
            assert_ok(cvy_transport_mpi.reduce_start(members[m], s, &what[m][s]));
        }
    }
    for (int m = 0; m < 2; m++) /* all of them are done without any wait */
        assert_ok(cvy_counter_wait(&members[m]->hub->party->done, N_SUMS, 30, NULL, "sums"));
    for (int m = 0; m < 2; m++) {
        for (int s = N_SUMS - 1; s >= 0; s--) {
            assert_ok(cvy_transport_mpi.reduce_wait(members[m], s));
            for (int i = 0; i < N; i++)
                assert_true(memory[m][s][i] == (float)(2 * s + 1));
        }
        cvy_transport_mpi.close(1, &members[m]);
    }
    leave_worlds(2, worlds);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_giving_up_ends_all),
        cmocka_unit_test(test_leaving_alone_is_an_error),
        cmocka_unit_test(test_broken_network_is_said),
        cmocka_unit_test(test_groups_of_others),
        cmocka_unit_test(test_given_up_before_it_is_opened),
        cmocka_unit_test(test_wrong_groups),
        cmocka_unit_test(test_sums_move_by_themselves),
        cmocka_unit_test(test_nobody_else_starts), /* last: its threads stay in the network for ever */
    };
    int n_failed = run_suite(3);
    setenv("CONVOY_NO_SHARED_MEMORY", "1", 1);
    n_failed += run_suite(2);
    unsetenv("CONVOY_NO_SHARED_MEMORY");
    n_failed += cmocka_run_group_tests(tests, NULL, NULL);
    loop_sweep(true);
    return n_failed;
}

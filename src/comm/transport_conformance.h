/* What every transport must do, as one suite: a transport's test includes this and calls
   transport_conformance(&cvy_transport_X). Members are threads; they report through their statuses and
   messages, since only the main thread may assert. */
#ifndef CVY_COMM_TRANSPORT_CONFORMANCE_H
#define CVY_COMM_TRANSPORT_CONFORMANCE_H

#include "base/rng.h"
#include "base/thread.h"
#include "cvy_test.h"
#include "rt/comm.h"
#include "rt/tree.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MEMBERS = 16, GUARD = 4 };

/* ---- members ----------------------------------------------------------------------------------------- */

struct member {
    const struct cvy_transport *transport;
    struct cvy_group *group;
    int rank, n;
    void *context; /* the test's */
    cvy_status (*main)(struct member *me);
    struct cvy_error error; /* code and message of main */
    double took_s;
};

static void *member_thread(void *argument) {
    struct member *me = argument;
    int64_t start = cvy_now_ns();
    cvy_error_save(&me->error, me->main(me));
    me->took_s = (double)(cvy_now_ns() - start) * 1e-9;
    return NULL;
}

/* Runs n members to their ends; their statuses are for the caller to judge. */
static void run_members(const struct cvy_transport *transport, int n, double timeout_s,
                        cvy_status (*member_main)(struct member *), void *context, struct member *members) {
    struct cvy_group *groups[MAX_MEMBERS];
    pthread_t threads[MAX_MEMBERS];
    assert_int_equal(transport->open(n, timeout_s, groups), CVY_OK);
    for (int m = 0; m < n; m++) {
        members[m] = (struct member){.transport = transport, .group = groups[m], .rank = m, .n = n};
        members[m].context = context;
        members[m].main = member_main;
        assert_int_equal(cvy_thread_start(&threads[m], "member", member_thread, &members[m]), CVY_OK);
    }
    for (int m = 0; m < n; m++)
        pthread_join(threads[m], NULL);
    transport->close(n, groups);
}

static void run_members_ok(const struct cvy_transport *transport, int n,
                           cvy_status (*member_main)(struct member *), void *context) {
    struct member members[MAX_MEMBERS];
    run_members(transport, n, 60, member_main, context, members);
    for (int m = 0; m < n; m++) {
        if (members[m].error.code != CVY_OK)
            fail_msg("member %d of %d: %s", m, n, members[m].error.message);
    }
}

/* ---- reductions: bit for bit the tree ------------------------------------------------------------------ */

struct reduce_case {
    int n_shards, n_rounds;
    size_t n;
};

/* What shard s gives in some round: magnitudes far apart, so that another order gives other bits. */
static void shard_values(int shard, int round, size_t n, float *out) {
    struct cvy_rng rng;
    cvy_rng_init(&rng, 7, CVY_RNG_TEST, (uint64_t)shard, (uint32_t)round);
    for (size_t i = 0; i < n; i++) {
        double magnitude = (double)(1u << cvy_rng_below(&rng, 24));
        out[i] = (float)(cvy_rng_normal(&rng) * magnitude);
    }
}

/* The tree's definition; out has n floats. */
static cvy_status tree_value(const struct reduce_case *what, int round, int level, int first, float *out) {
    if (level == 0) {
        shard_values(first, round, what->n, out);
        return CVY_OK;
    }
    int half = 1 << (level - 1);
    CVY_TRY(tree_value(what, round, level - 1, first, out));
    if (first + half < what->n_shards) {
        float *right;
        CVY_TRY(CVY_ALLOC(right, what->n));
        cvy_status status = tree_value(what, round, level - 1, first + half, right);
        for (size_t i = 0; i < what->n; i++)
            out[i] = out[i] + right[i];
        free(right);
        CVY_TRY(status);
    }
    return CVY_OK;
}

/* Computes the own shards by the recipe; *n_mine sums are left. */
static void own_sums(const struct member *me, int round, float *const *sums, int *n_mine) {
    const struct reduce_case *what = me->context;
    struct cvy_tree_stack stack = {.n_shards = what->n_shards};
    int32_t first, n;
    cvy_tree_shards(what->n_shards, me->n, me->rank, &first, &n);
    for (int s = first; s < first + n; s++) {
        int k = stack.n;
        shard_values(s, round, what->n, sums[k]);
        for (int adds = cvy_tree_push(&stack, s, 0); adds > 0; adds--, k--) {
            for (size_t i = 0; i < what->n; i++)
                sums[k - 1][i] = sums[k - 1][i] + sums[k][i];
        }
    }
    *n_mine = stack.n;
}

static cvy_status check_result(const struct reduce_case *what, int round, const float *result) {
    float *expected;
    CVY_TRY(CVY_ALLOC(expected, what->n + 1));
    int levels = 0;
    while (1 << levels < what->n_shards)
        levels++;
    cvy_status status = tree_value(what, round, levels, 0, expected);
    if (status == CVY_OK && memcmp(result, expected, what->n * sizeof *result) != 0)
        status = CVY_FAIL(CVY_ERR_FAILED, "S = %d, n = %zu, round %d: other bits than the tree's",
                          what->n_shards, what->n, round);
    for (int i = 0; status == CVY_OK && i < GUARD; i++) {
        if (result[what->n + (size_t)i] != -1)
            status = CVY_FAIL(CVY_ERR_FAILED, "n = %zu: written behind the end", what->n);
    }
    free(expected);
    return status;
}

/* Two reductions in flight in each round; odd rounds put the result where sum 0 is, even ones elsewhere. */
static cvy_status reduce_rounds(struct member *me, float *memory) {
    const struct reduce_case *what = me->context;
    struct cvy_partial partials[MAX_MEMBERS * 8];
    int32_t n_partials = 0;
    for (int d = 0; d < me->n; d++)
        n_partials += cvy_tree_partials(what->n_shards, me->n, d, partials + n_partials, NULL);
    size_t stride = what->n + GUARD;
    float *sums[2][9];
    for (int k = 0; k < 9; k++) {
        sums[0][k] = memory + (size_t)k * stride;
        sums[1][k] = memory + (size_t)(k + 9) * stride;
    }
    for (int round = 0; round < what->n_rounds; round++) {
        int n_mine;
        struct cvy_reduction reductions[2];
        for (int slot = 0; slot < 2; slot++) {
            own_sums(me, round + slot, sums[slot], &n_mine);
            float *result = round % 2 ? sums[slot][0] : memory + (size_t)(18 + slot) * stride;
            reductions[slot] = (struct cvy_reduction){.name = slot ? "bucket 1" : "bucket 0",
                                                      .n = what->n,
                                                      .n_shards = what->n_shards,
                                                      .n_partials = n_partials,
                                                      .partials = partials,
                                                      .mine = sums[slot],
                                                      .result = result};
            CVY_TRY(me->transport->reduce_start(me->group, slot, &reductions[slot]));
        }
        for (int slot = 0; slot < 2; slot++) {
            CVY_TRY(me->transport->reduce_wait(me->group, slot));
            CVY_TRY(check_result(what, round + slot, reductions[slot].result));
        }
    }
    return CVY_OK;
}

static cvy_status reduce_main(struct member *me) {
    const struct reduce_case *what = me->context;
    size_t n = 20 * (what->n + GUARD);
    float *memory;
    CVY_TRY(CVY_ALLOC(memory, n));
    for (size_t i = 0; i < n; i++)
        memory[i] = -1;
    cvy_status status = reduce_rounds(me, memory);
    if (status != CVY_OK)
        me->transport->abort(me->group, cvy_error());
    else
        status = me->transport->barrier(me->group, "end"); /* others may still read our memory */
    free(memory);
    return status;
}

static void test_reduce_is_the_tree(void **state) {
    static const size_t sizes[] = {0, 1, 15, 16, 17, 100, 515, 2049};
    for (int n_shards = 1; n_shards <= 9; n_shards++) {
        for (int n_members = 1; n_members <= 5; n_members++) {
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                struct reduce_case what = {.n_shards = n_shards, .n_rounds = 2, .n = sizes[i]};
                run_members_ok(*state, n_members, reduce_main, &what);
            }
        }
    }
}

static void test_more_members_than_cores(void **state) {
    struct reduce_case what = {.n_shards = 20, .n_rounds = 20, .n = 77};
    run_members_ok(*state, MAX_MEMBERS, reduce_main, &what);
}

/* ---- broadcast and barrier ----------------------------------------------------------------------------- */

static cvy_status broadcast_main(struct member *me) {
    enum { N = 1001 };
    unsigned char bytes[N + 1];
    for (int round = 0; round < 20; round++) {
        int root = round % me->n;
        size_t n = round == 3 ? 0 : N - (size_t)round;
        memset(bytes, me->rank == root ? round + 1 : 0, sizeof bytes);
        bytes[n] = 99;
        CVY_TRY(me->transport->broadcast(me->group, root, bytes, n, "weights"));
        for (size_t i = 0; i < n; i++) {
            if (bytes[i] != round + 1)
                return CVY_FAIL(CVY_ERR_FAILED, "member %d: byte %zu of round %d is wrong", me->rank, i,
                                round);
        }
        if (bytes[n] != 99)
            return CVY_FAIL(CVY_ERR_FAILED, "member %d: written behind the end", me->rank);
    }
    return CVY_OK;
}

static void test_broadcast(void **state) {
    for (int n = 1; n <= 5; n++)
        run_members_ok(*state, n, broadcast_main, NULL);
}

static cvy_status barrier_main(struct member *me) {
    atomic_int *n_before = me->context;
    for (int round = 1; round <= 50; round++) {
        atomic_fetch_add(n_before, 1);
        CVY_TRY(me->transport->barrier(me->group, "before"));
        if (atomic_load(n_before) != round * me->n)
            return CVY_FAIL(CVY_ERR_FAILED, "member %d left before all had come", me->rank);
        CVY_TRY(me->transport->barrier(me->group, "after"));
    }
    return CVY_OK;
}

static void test_barrier(void **state) {
    for (int n = 1; n <= 5; n++) {
        atomic_int n_before = 0;
        run_members_ok(*state, n, barrier_main, &n_before);
    }
}

/* ---- failures ------------------------------------------------------------------------------------------ */

/* One reduction of a shard for each member; one of them is at fault. */
struct fault {
    int member;
    enum { FAULT_ABSENT, FAULT_ABORT, FAULT_OTHER_SIZE, FAULT_OTHER_TREE, FAULT_OTHER_NAME } kind;
    struct posted { /* of each member; outlives them all, since after a failure others may still read it */
        struct cvy_reduction what;
        struct cvy_partial partials[MAX_MEMBERS];
        float memory[64], *mine[1];
    } posted[MAX_MEMBERS];
};

static cvy_status faulty_main(struct member *me) {
    struct fault *fault = me->context;
    struct posted *mine = &fault->posted[me->rank];
    struct cvy_reduction *what = &mine->what;
    bool is_faulty = me->rank == fault->member;
    mine->mine[0] = mine->memory;
    *what = (struct cvy_reduction){.name = "bucket 2",
                                   .n = 64,
                                   .n_shards = me->n,
                                   .n_partials = me->n,
                                   .partials = mine->partials,
                                   .mine = mine->mine,
                                   .result = mine->memory};
    for (int d = 0; d < me->n; d++)
        cvy_tree_partials(me->n, me->n, d, mine->partials + d, NULL);
    if (is_faulty && fault->kind == FAULT_ABSENT)
        return CVY_OK;
    if (is_faulty && fault->kind == FAULT_ABORT) {
        me->transport->abort(me->group, "the loss is not a number");
        return CVY_FAIL(CVY_ERR_NAN, "the loss is not a number");
    }
    if (is_faulty && fault->kind == FAULT_OTHER_SIZE)
        what->n = 48;
    if (is_faulty && fault->kind == FAULT_OTHER_TREE)
        mine->partials[0].level = 1;
    if (is_faulty && fault->kind == FAULT_OTHER_NAME)
        what->name = "bucket 3";
    CVY_TRY(me->transport->reduce_start(me->group, 2, what));
    CVY_TRY(me->transport->reduce_wait(me->group, 2));
    return CVY_OK;
}

static void assert_contains(const char *text, const char *part) {
    if (!strstr(text, part))
        fail_msg("\"%s\" does not say \"%s\"", text, part);
}

static void test_late_member_is_named(void **state) {
    struct fault fault = {.member = 2, .kind = FAULT_ABSENT};
    struct member members[MAX_MEMBERS];
    run_members(*state, 4, 0.2, faulty_main, &fault, members);
    for (int m = 0; m < 4; m++) {
        if (m == fault.member)
            continue;
        assert_int_equal(members[m].error.code, CVY_ERR_LOST);
        assert_contains(members[m].error.message, "bucket 2");
        assert_contains(members[m].error.message, "for member 2");
        assert_contains(members[m].error.message, "waited 0.2 seconds");
        assert_true(members[m].took_s > 0.1 && members[m].took_s < 5);
    }
}

static void test_abort_ends_all_waits(void **state) {
    struct fault fault = {.member = 1, .kind = FAULT_ABORT};
    struct member members[MAX_MEMBERS];
    run_members(*state, 3, 60, faulty_main, &fault, members);
    assert_int_equal(members[1].error.code, CVY_ERR_NAN);
    for (int m = 0; m < 3; m += 2) {
        assert_int_equal(members[m].error.code, CVY_ERR_LOST);
        assert_contains(members[m].error.message, "the loss is not a number");
        assert_contains(members[m].error.message, "bucket 2");
        assert_true(members[m].took_s < 5);
    }
}

static void test_different_programs_are_found(void **state) {
    for (int kind = FAULT_OTHER_SIZE; kind <= FAULT_OTHER_NAME; kind++) {
        struct fault fault = {.member = 1, .kind = kind};
        struct member members[MAX_MEMBERS];
        run_members(*state, 2, 60, faulty_main, &fault, members);
        for (int m = 0; m < 2; m++) {
            assert_int_equal(members[m].error.code, CVY_ERR_LOST);
            assert_contains(members[m].error.message, "must run the same program");
            assert_true(members[m].took_s < 5);
        }
    }
}

static void test_first_reason_stays(void **state) {
    const struct cvy_transport *transport = *state;
    struct cvy_group *groups[2];
    assert_int_equal(transport->open(2, 60, groups), CVY_OK);
    assert_null(transport->abort_reason(groups[0]));
    transport->abort(groups[0], "first");
    transport->abort(groups[1], "second");
    assert_string_equal(transport->abort_reason(groups[0]), "first");
    assert_string_equal(transport->abort_reason(groups[1]), "first");
    assert_int_equal(transport->barrier(groups[0], "too late"), CVY_ERR_LOST);
    transport->close(2, groups);
}

static void test_misuse(void **state) {
    const struct cvy_transport *transport = *state;
    struct cvy_group *group;
    assert_int_equal(transport->open(0, 60, &group), CVY_ERR_USAGE);
    assert_int_equal(transport->open(1, 60, &group), CVY_OK);
    struct cvy_partial partial = {0};
    float value = 3, *mine[] = {&value};
    struct cvy_reduction what = {.name = "bucket 0",
                                 .n = 1,
                                 .n_shards = 1,
                                 .n_partials = 1,
                                 .partials = &partial,
                                 .mine = mine,
                                 .result = &value};
    assert_int_equal(transport->reduce_wait(group, 0), CVY_ERR_FAILED);
    assert_int_equal(transport->reduce_start(group, -1, &what), CVY_ERR_FAILED);
    assert_int_equal(transport->reduce_start(group, CVY_MAX_REDUCTIONS, &what), CVY_ERR_FAILED);
    assert_int_equal(transport->reduce_start(group, 0, &what), CVY_OK);
    assert_int_equal(transport->reduce_start(group, 0, &what), CVY_ERR_FAILED);
    assert_int_equal(transport->reduce_wait(group, 0), CVY_OK);
    assert_true(value == 3);
    assert_int_equal(transport->broadcast(group, 1, &value, sizeof value, "weights"), CVY_ERR_FAILED);
    transport->close(1, &group);
}

static int transport_conformance(const struct cvy_transport *transport) {
    const struct cvy_transport *given =
        transport; /* cmocka hands on non-const pointers; nobody writes there */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_reduce_is_the_tree, (void *)given),
        cmocka_unit_test_prestate(test_more_members_than_cores, (void *)given),
        cmocka_unit_test_prestate(test_broadcast, (void *)given),
        cmocka_unit_test_prestate(test_barrier, (void *)given),
        cmocka_unit_test_prestate(test_late_member_is_named, (void *)given),
        cmocka_unit_test_prestate(test_abort_ends_all_waits, (void *)given),
        cmocka_unit_test_prestate(test_different_programs_are_found, (void *)given),
        cmocka_unit_test_prestate(test_first_reason_stays, (void *)given),
        cmocka_unit_test_prestate(test_misuse, (void *)given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif

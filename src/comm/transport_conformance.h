/* What every transport must do, as one suite: a transport's test includes this and calls
   transport_conformance. Here: broadcast, barrier, failures. */
#ifndef CVY_COMM_TRANSPORT_CONFORMANCE_H
#define CVY_COMM_TRANSPORT_CONFORMANCE_H

#include "comm/conformance_link_faults.h"
#include "comm/conformance_links.h"
#include "comm/conformance_members.h"
#include "comm/conformance_reductions.h"

#include <stdatomic.h>

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

static cvy_status broadcast_much_main(struct member *me) {
    enum { N = 3000001 };
    unsigned char *bytes;
    CVY_TRY(CVY_ALLOC(bytes, N));
    for (size_t i = 0; i < N && me->rank == me->n - 1; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 1000);
    cvy_status status = me->transport->broadcast(me->group, me->n - 1, bytes, N, "weights");
    for (size_t i = 0; i < N && status == CVY_OK; i++) {
        if (bytes[i] != (unsigned char)(i * 7 + i / 1000))
            status = CVY_FAIL(CVY_ERR_FAILED, "member %d: byte %zu is wrong", me->rank, i);
    }
    if (status == CVY_OK)
        status = me->transport->barrier(me->group, "end"); /* others may still read our memory */
    free(bytes);
    return status;
}

static void test_broadcast_much(void **state) { run_members_ok(*state, 3, broadcast_much_main, NULL); }

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
        atomic_int *n_before = shared_place(*state);
        run_members_ok(*state, n, barrier_main, n_before);
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

static void test_late_member_is_named(void **state) {
    struct fault fault = {.member = 2, .kind = FAULT_ABSENT};
    struct member members[MAX_MEMBERS];
    run_members(*state, 4, 1, faulty_main, &fault, members);
    for (int m = 0; m < 4; m++) {
        if (m == fault.member)
            continue;
        assert_lost(&members[m], "bucket 2");
        assert_lost(&members[m], "for member 2");
        assert_lost(&members[m], "waited ");
        assert_waited(&members[m]);
    }
}

static void test_abort_ends_all_waits(void **state) {
    struct fault fault = {.member = 1, .kind = FAULT_ABORT};
    struct member members[MAX_MEMBERS];
    run_members(*state, 3, 60, faulty_main, &fault, members);
    assert_code(&members[1], CVY_ERR_NAN);
    for (int m = 0; m < 3; m += 2) {
        assert_lost(&members[m], "the loss is not a number");
        assert_lost(&members[m], "bucket 2");
    }
}

static void test_different_programs_are_found(void **state) {
    for (int kind = FAULT_OTHER_SIZE; kind <= FAULT_OTHER_NAME; kind++) {
        struct fault fault = {.member = 1, .kind = kind};
        struct member members[MAX_MEMBERS];
        run_members(*state, 2, 60, faulty_main, &fault, members);
        for (int m = 0; m < 2; m++)
            assert_lost(&members[m], "must run the same program");
    }
}

static void test_first_reason_stays(void **state) {
    const struct cvy_transport *transport = ((const struct suite *)*state)->transport;
    struct cvy_group *groups[2];
    assert_int_equal(transport->open(&(struct cvy_group_spec){.n = 2, .timeout_s = 60}, groups), CVY_OK);
    assert_null(transport->abort_reason(groups[0]));
    transport->abort(groups[0], "first");
    transport->abort(groups[1], "second");
    assert_string_equal(transport->abort_reason(groups[0]), "first");
    assert_string_equal(transport->abort_reason(groups[1]), "first");
    assert_int_equal(transport->barrier(groups[0], "too late"), CVY_ERR_LOST);
    transport->close(2, groups);
}

static void test_misuse(void **state) {
    const struct cvy_transport *transport = ((const struct suite *)*state)->transport;
    struct cvy_group *group;
    assert_int_equal(transport->open(&(struct cvy_group_spec){.n = 0, .timeout_s = 60}, &group),
                     CVY_ERR_USAGE);
    assert_int_equal(transport->open(&(struct cvy_group_spec){.n = 1, .timeout_s = 60}, &group), CVY_OK);
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

static int transport_conformance(struct suite *given) {
    const struct CMUnitTest tests[] = {
        REDUCTION_TESTS(given),
        cmocka_unit_test_prestate(test_broadcast, given),
        cmocka_unit_test_prestate(test_broadcast_much, given),
        cmocka_unit_test_prestate(test_barrier, given),
        cmocka_unit_test_prestate(test_late_member_is_named, given),
        cmocka_unit_test_prestate(test_abort_ends_all_waits, given),
        cmocka_unit_test_prestate(test_different_programs_are_found, given),
        cmocka_unit_test_prestate(test_first_reason_stays, given),
        cmocka_unit_test_prestate(test_misuse, given),
        LINK_TESTS(given),
        LINK_FAULT_TESTS(given),
    };
    return cmocka_run_group_tests_name(given->transport->name, tests, NULL, NULL);
}

#endif

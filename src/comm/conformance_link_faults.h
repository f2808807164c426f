/* Links of every transport when something is wrong: an end that gives up, is late or disagrees, calls that
   cannot be right. A part of the suite transport_conformance.h. */
#ifndef CVY_COMM_CONFORMANCE_LINK_FAULTS_H
#define CVY_COMM_CONFORMANCE_LINK_FAULTS_H

#include "comm/conformance_links.h"
#include "comm/conformance_members.h"

/* ---- failures ------------------------------------------------------------------------------------ */

/* Members 0 and 3 wait for 3 and 1, which wait themselves; member 1 for 2, which gives up. */
static cvy_status abort_main(struct member *me) {
    if (me->rank == 2) {
        CVY_TRY(me->transport->link_open(me->group, 0, 2, 1, sizeof(uint64_t), 1));
        sleep_ms(50);
        me->transport->abort(me->group, "the loss is not a number");
        return CVY_FAIL(CVY_ERR_NAN, "the loss is not a number");
    }
    if (me->rank == 1)
        CVY_TRY(me->transport->link_open(me->group, 0, 2, 1, sizeof(uint64_t), 1));
    if (me->rank != 0)
        CVY_TRY(me->transport->link_open(me->group, 1, 1, 3, sizeof(uint64_t), 1));
    if (me->rank != 1)
        CVY_TRY(me->transport->link_open(me->group, 2, 0, 3, sizeof(uint64_t), 1));
    for (uint64_t word = 0; word < 2 && me->rank == 0; word++) /* the second is one too many */
        CVY_TRY(send_word(me, 2, word));
    CVY_TRY(recv_word(me, me->rank == 1 ? 0 : 1, 0));
    return CVY_OK;
}

static void test_abort_ends_waits_on_links(void **state) {
    struct member members[MAX_MEMBERS];
    run_members(*state, 4, 60, abort_main, NULL, members);
    assert_code(&members[2], CVY_ERR_NAN);
    for (int m = 0; m < 4; m++) {
        if (m == 2)
            continue;
        assert_lost(&members[m], "the loss is not a number");
        assert_lost(&members[m], "word");
    }
}

/* The member that the context names opens the link and leaves. */
static cvy_status absent_main(struct member *me) {
    const int *absent = me->context;
    CVY_TRY(me->transport->link_open(me->group, 0, 0, 1, sizeof(uint64_t), 2));
    if (me->rank == *absent)
        return CVY_OK;
    for (uint64_t word = 0; word < 3; word++)
        CVY_TRY(me->rank == 0 ? send_word(me, 0, word) : recv_word(me, 0, word));
    return CVY_OK;
}

static void test_late_end_of_link_is_named(void **state) {
    for (int absent = 0; absent < 2; absent++) {
        struct member members[MAX_MEMBERS];
        run_members(*state, 2, 1, absent_main, &absent, members);
        const struct member *waiter = &members[1 - absent];
        assert_code(&members[absent], CVY_OK);
        assert_lost(waiter, "word");
        assert_lost(waiter, "waited ");
        assert_lost(waiter, absent == 0 ? "for member 0 to send" : "for member 1 to receive");
        assert_waited(waiter);
    }
}

/* ---- ends that disagree -------------------------------------------------------------------------- */

struct link_end {
    int capacity;
    size_t n_bytes; /* of the link */
    int32_t tag;
    size_t n_sent; /* bytes of the message */
};

static cvy_status disagreeing_main(struct member *me) {
    const struct link_end *end = &((const struct link_end *)me->context)[me->rank];
    unsigned char memory[64], before[64];
    memset(memory, GUARD_BYTE, sizeof memory);
    memset(before, GUARD_BYTE, sizeof before);
    struct cvy_piece piece = {.at = memory, .n_bytes = end->n_sent};
    CVY_TRY(me->transport->link_open(me->group, 7, 0, 1, end->n_bytes, end->capacity));
    if (me->rank == 0) {
        memset(memory, 1, sizeof memory);
        CVY_TRY(me->transport->send(me->group, 7, end->tag, &piece, 1, "shard 3"));
    } else {
        cvy_status status = me->transport->recv(me->group, 7, end->tag, &piece, 1, "shard 3");
        if (memcmp(memory, before, sizeof before) != 0)
            return CVY_FAIL(CVY_ERR_FAILED, "a message that does not fit was written");
        CVY_TRY(status);
    }
    return me->transport->barrier(me->group, "end"); /* tells the sender too */
}

static void test_disagreeing_ends_are_found(void **state) {
    static const struct {
        struct link_end ends[2];
        const char *says[3]; /* to both members */
    } cases[] = {
        {{{1, 64, 5, 64}, {1, 64, 6, 64}}, {"shard 3", "expected tag 6", "sent tag 5"}},
        {{{1, 64, 5, 48}, {1, 64, 5, 64}}, {"shard 3", "tag 5 with 64 bytes", "tag 5 with 48 bytes"}},
        {{{1, 64, 5, 64}, {1, 64, 5, 60}}, {"shard 3", "tag 5 with 60 bytes", "tag 5 with 64 bytes"}},
        {{{1, 64, 5, 64}, {2, 64, 5, 64}}, {"link 7", "0 to 1, 1 x 64 bytes", "0 to 1, 2 x 64 bytes"}},
        {{{1, 64, 5, 64}, {1, 72, 5, 64}}, {"link 7", "0 to 1, 1 x 64 bytes", "0 to 1, 1 x 72 bytes"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct link_end ends[2] = {cases[i].ends[0], cases[i].ends[1]};
        struct member members[MAX_MEMBERS];
        run_members(*state, 2, 60, disagreeing_main, ends, members);
        for (int m = 0; m < 2; m++) {
            assert_lost(&members[m], "must run the same program");
            for (int k = 0; k < 3; k++)
                assert_lost(&members[m], cases[i].says[k]);
        }
    }
}

/* ---- misuse -------------------------------------------------------------------------------------- */

static cvy_status misuse_main(struct member *me) {
    const struct cvy_transport *transport = me->transport;
    struct cvy_group *group = me->group;
    unsigned char memory[17];
    struct cvy_piece pieces[] = {{memory, 8}, {memory + 8, 9}};
    int rank = me->rank, next = (rank + 1) % 3, last = (rank + 2) % 3;
    for (int i = 0; i < 2 && rank != 2; i++) /* the second changes nothing */
        CVY_TRY(transport->link_open(group, 0, 0, 1, 16, 1));
    const cvy_status failed[] = {
        transport->link_open(group, -1, rank, next, 8, 1),
        transport->link_open(group, CVY_MAX_LINKS, rank, next, 8, 1),
        transport->link_open(group, 1, rank, rank, 8, 1),
        transport->link_open(group, 1, rank, 3, 8, 1),
        transport->link_open(group, 1, -1, rank, 8, 1),
        transport->link_open(group, 1, next, last, 8, 1),
        transport->link_open(group, 1, rank, next, 8, 0),
        transport->send(group, -1, 0, pieces, 1, "no link"),
        transport->send(group, 1, 0, pieces, 1, "not open"),
        transport->recv(group, 1, 0, pieces, 1, "not open"),
        transport->send(group, 0, 0, pieces, rank == 0 ? 2 : 1, "too large, or the wrong end"),
        rank == 1 ? CVY_ERR_FAILED : transport->recv(group, 0, 0, pieces, 1, "the wrong end"),
    };
    for (size_t i = 0; i < sizeof failed / sizeof failed[0]; i++) {
        if (failed[i] != CVY_ERR_FAILED)
            return CVY_FAIL(CVY_ERR_USAGE, "wrong call %zu gave status %d", i, failed[i]);
    }
    if (rank == 0)
        CVY_TRY(send_word(me, 0, 77));
    if (rank == 1)
        CVY_TRY(recv_word(me, 0, 77)); /* none of the wrong calls sent anything */
    return CVY_OK;
}

static void test_link_misuse(void **state) { run_members_ok(*state, 3, misuse_main, NULL); }

static cvy_status huge_main(struct member *me) {
    static const size_t huge[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4};
    for (int i = 0; i < 3; i++) {
        cvy_status status = me->transport->link_open(me->group, i, 0, 1, huge[i], 4);
        if (status != CVY_ERR_MEMORY)
            return CVY_FAIL(CVY_ERR_FAILED, "4 messages of %zu bytes gave status %d", huge[i], status);
    }
    return CVY_OK;
}

static void test_link_without_memory(void **state) { run_members_ok(*state, 2, huge_main, NULL); }

#define LINK_FAULT_TESTS(transport)                                            \
    cmocka_unit_test_prestate(test_abort_ends_waits_on_links, transport),      \
        cmocka_unit_test_prestate(test_late_end_of_link_is_named, transport),  \
        cmocka_unit_test_prestate(test_disagreeing_ends_are_found, transport), \
        cmocka_unit_test_prestate(test_link_misuse, transport),                \
        cmocka_unit_test_prestate(test_link_without_memory, transport)

#endif

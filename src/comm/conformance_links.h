/* What the links of every transport must do: a part of the suite transport_conformance.h. */
#ifndef CVY_COMM_CONFORMANCE_LINKS_H
#define CVY_COMM_CONFORMANCE_LINKS_H

#include "base/rng.h"
#include "comm/conformance_members.h"

#include <stdatomic.h>
#include <time.h>

enum { MESSAGE_BYTES = 300, MAX_PIECES = 5, GUARD_BYTE = 0xEE };

static void sleep_ms(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* ---- one word at a time -------------------------------------------------------------------------- */

static cvy_status send_word(struct member *me, int link, uint64_t word) {
    struct cvy_piece piece = {.at = &word, .n_bytes = sizeof word};
    return me->transport->send(me->group, link, 1, &piece, 1, "word");
}

static cvy_status recv_word(struct member *me, int link, uint64_t expected) {
    uint64_t word = ~expected;
    struct cvy_piece piece = {.at = &word, .n_bytes = sizeof word};
    CVY_TRY(me->transport->recv(me->group, link, 1, &piece, 1, "word"));
    if (word != expected)
        return CVY_FAIL(CVY_ERR_FAILED, "link %d: word %llu came where %llu was due", link,
                        (unsigned long long)word, (unsigned long long)expected);
    return CVY_OK;
}

/* ---- order, tags, pieces ------------------------------------------------------------------------- */

struct cut_message { /* cut at random, with a guard behind each piece; empty pieces lie nowhere */
    unsigned char memory[MESSAGE_BYTES + MAX_PIECES];
    struct cvy_piece pieces[MAX_PIECES];
    int n;
};

static void cut_message(struct cut_message *out, int rank, int message, size_t n_bytes) {
    struct cvy_rng rng;
    cvy_rng_init(&rng, 5, CVY_RNG_TEST, (uint64_t)message, (uint32_t)rank);
    memset(out->memory, GUARD_BYTE, sizeof out->memory);
    out->n = 1 + (int)cvy_rng_below(&rng, MAX_PIECES);
    unsigned char *at = out->memory;
    for (int i = 0; i < out->n; i++) {
        size_t n = i == out->n - 1 ? n_bytes : cvy_rng_below(&rng, (uint32_t)n_bytes + 1);
        out->pieces[i] = (struct cvy_piece){.at = n > 0 ? at : NULL, .n_bytes = n};
        at += n + 1;
        n_bytes -= n;
    }
}

static unsigned char message_byte(int message, size_t at) {
    return (unsigned char)((size_t)message * 29 + at * 7 + at / 64);
}

static void fill_message(struct cut_message *cut, int message) {
    size_t at = 0;
    for (int i = 0; i < cut->n; i++) {
        unsigned char *bytes = cut->pieces[i].at;
        for (size_t j = 0; j < cut->pieces[i].n_bytes; j++)
            bytes[j] = message_byte(message, at++);
    }
}

static cvy_status check_message(const struct cut_message *got, int message) {
    struct cut_message expected = *got;
    memset(expected.memory, GUARD_BYTE, sizeof expected.memory);
    for (int i = 0; i < got->n; i++) {
        if (got->pieces[i].at)
            expected.pieces[i].at = expected.memory + ((unsigned char *)got->pieces[i].at - got->memory);
    }
    fill_message(&expected, message);
    if (memcmp(got->memory, expected.memory, sizeof expected.memory) != 0)
        return CVY_FAIL(CVY_ERR_FAILED, "message %d in %d pieces came with other bytes", message, got->n);
    return CVY_OK;
}

static cvy_status pieces_main(struct member *me) {
    CVY_TRY(me->transport->link_open(me->group, 5, 0, 1, MESSAGE_BYTES, 3));
    for (int message = 0; message < 400; message++) {
        int32_t tag = message * 1000003 - 7;
        struct cut_message cut;
        cut_message(&cut, me->rank, message, (size_t)message * 37 % (MESSAGE_BYTES + 1));
        if (me->rank == 0) {
            fill_message(&cut, message);
            CVY_TRY(me->transport->send(me->group, 5, tag, cut.pieces, cut.n, "pieces"));
            memset(cut.memory, 0, sizeof cut.memory); /* what was sent is complete */
        } else {
            CVY_TRY(me->transport->recv(me->group, 5, tag, cut.pieces, cut.n, "pieces"));
            CVY_TRY(check_message(&cut, message));
        }
    }
    return CVY_OK;
}

static void test_link_order_tags_and_pieces(void **state) { run_members_ok(*state, 2, pieces_main, NULL); }

/* ---- capacity ------------------------------------------------------------------------------------ */

struct pressure {
    int capacity;
    atomic_int n_asked; /* messages that the receiver asked for so far */
};

static cvy_status pressure_open(struct member *me, int capacity) {
    return me->transport->link_open(me->group, 0, 0, 1, sizeof(uint64_t), capacity);
}

/* So many messages pass without a receiver, again and again; opening once more does not touch them. */
static cvy_status fill_and_empty(struct member *me, int capacity) {
    for (uint64_t round = 0; round < 20; round++) {
        for (int i = 0; i < capacity && me->rank == 0; i++)
            CVY_TRY(send_word(me, 0, round << 8 | (uint64_t)i));
        CVY_TRY(pressure_open(me, capacity));
        CVY_TRY(me->transport->barrier(me->group, "full"));
        for (int i = 0; i < capacity && me->rank == 1; i++)
            CVY_TRY(recv_word(me, 0, round << 8 | (uint64_t)i));
    }
    return CVY_OK;
}

static cvy_status pressure_main(struct member *me) {
    struct pressure *pressure = me->context;
    CVY_TRY(pressure_open(me, pressure->capacity));
    CVY_TRY(fill_and_empty(me, pressure->capacity));
    CVY_TRY(me->transport->barrier(me->group, "empty"));
    for (int i = 0; i < 20; i++) {
        if (me->rank == 0) {
            CVY_TRY(send_word(me, 0, (uint64_t)i));
            if (i + 1 > atomic_load(&pressure->n_asked) + pressure->capacity)
                return CVY_FAIL(CVY_ERR_FAILED, "message %d went over the capacity of %d", i,
                                pressure->capacity);
        } else {
            sleep_ms(1);
            atomic_fetch_add(&pressure->n_asked, 1);
            CVY_TRY(recv_word(me, 0, (uint64_t)i));
        }
    }
    return CVY_OK;
}

static void test_link_capacity(void **state) {
    for (int capacity = 1; capacity <= 5; capacity += 2) {
        struct pressure *pressure = shared_place(*state);
        pressure->capacity = capacity;
        run_members_ok(*state, 2, pressure_main, pressure);
    }
}

static cvy_status both_ways_main(struct member *me) {
    enum { CAPACITY = 3 };
    int mine = me->rank, theirs = 1 - me->rank; /* link k goes from k to 1 - k */
    for (int link = 0; link < 2; link++)
        CVY_TRY(me->transport->link_open(me->group, link, link, 1 - link, sizeof(uint64_t), CAPACITY));
    for (uint64_t word = 0; word < 200 * CAPACITY; word += CAPACITY) {
        for (uint64_t i = 0; i < CAPACITY; i++)
            CVY_TRY(send_word(me, mine, word + i + 1000 * (uint64_t)mine));
        for (uint64_t i = 0; i < CAPACITY; i++)
            CVY_TRY(recv_word(me, theirs, word + i + 1000 * (uint64_t)theirs));
    }
    return CVY_OK;
}

static void test_links_both_ways(void **state) { run_members_ok(*state, 2, both_ways_main, NULL); }

/* ---- many links: every member to every other ----------------------------------------------------- */

/* Numbers from all over the range; member by member the order of opening differs. */
static int pair_link(int from, int to, int n) { return CVY_MAX_LINKS - 1 - (from * n + to) * 113; }

static cvy_status all_pairs_main(struct member *me) {
    for (int i = 1; i < me->n; i++) {
        int other = (me->rank + i) % me->n;
        int out = pair_link(me->rank, other, me->n), in = pair_link(other, me->rank, me->n);
        CVY_TRY(me->transport->link_open(me->group, out, me->rank, other, 8 + (size_t)out % 90, 1 + out % 3));
        CVY_TRY(me->transport->link_open(me->group, in, other, me->rank, 8 + (size_t)in % 90, 1 + in % 3));
    }
    for (uint64_t round = 0; round < 30; round++) {
        for (int i = 1; i < me->n; i++) {
            int link = pair_link(me->rank, (me->rank + i) % me->n, me->n);
            CVY_TRY(send_word(me, link, round << 32 | (uint64_t)link));
        }
        for (int i = 1; i < me->n; i++) {
            int link = pair_link((me->rank + i) % me->n, me->rank, me->n);
            CVY_TRY(recv_word(me, link, round << 32 | (uint64_t)link));
        }
    }
    return CVY_OK;
}

static void test_many_links(void **state) {
    for (int n = 2; n <= 6; n += 2)
        run_members_ok(*state, n, all_pairs_main, NULL);
}

#define LINK_TESTS(transport)                                              \
    cmocka_unit_test_prestate(test_link_order_tags_and_pieces, transport), \
        cmocka_unit_test_prestate(test_link_capacity, transport),          \
        cmocka_unit_test_prestate(test_links_both_ways, transport),        \
        cmocka_unit_test_prestate(test_many_links, transport)

#endif

/* The reductions of every transport: bit for bit the tree, to all members or to one. A part of the suite
   transport_conformance.h. */
#ifndef CVY_COMM_CONFORMANCE_REDUCTIONS_H
#define CVY_COMM_CONFORMANCE_REDUCTIONS_H

#include "base/mem.h"
#include "base/rng.h"
#include "comm/conformance_members.h"
#include "rt/tree.h"

#include <stdlib.h>

enum { MAX_SUMS = 9, GUARD = 4 };

struct reduce_case {
    int n_shards, n_rounds;
    size_t n;
    bool is_to_one; /* each sum goes to one member alone, another each time */
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

/* Two reductions in flight at once, each with its sums and a place for the result. */
struct reduce_pair {
    struct cvy_partial partials[MAX_MEMBERS * 8];
    struct pair_slot {
        struct cvy_reduction what;
        float *memory, *before; /* all sums and the place behind them; `before`: as it was at the start */
        size_t n_bytes;
        float *sums[MAX_SUMS];
    } slots[2];
};

/* Odd rounds put the result where sum 0 is, even ones elsewhere. */
static void pair_prepare(struct reduce_pair *pair, const struct member *me, int round, int s) {
    static const char *const names[] = {"bucket 0", "bucket 1"};
    const struct reduce_case *what = me->context;
    struct pair_slot *slot = &pair->slots[s];
    int n_mine;
    int32_t n_partials = 0;
    for (int d = 0; d < me->n; d++)
        n_partials += cvy_tree_partials(what->n_shards, me->n, d, pair->partials + n_partials, NULL);
    own_sums(me, round + s, slot->sums, &n_mine);
    memcpy(slot->before, slot->memory, slot->n_bytes);
    bool is_wanted = !what->is_to_one || (round + s) % me->n == me->rank;
    float *result = round % 2 ? slot->sums[0] : slot->sums[MAX_SUMS - 1] + what->n + GUARD;
    slot->what = (struct cvy_reduction){.name = names[s],
                                        .n = what->n,
                                        .n_shards = what->n_shards,
                                        .n_partials = n_partials,
                                        .partials = pair->partials,
                                        .mine = slot->sums,
                                        .result = is_wanted ? result : NULL};
}

static cvy_status pair_check(const struct pair_slot *slot, const struct reduce_case *what, int round) {
    if (slot->what.result)
        return check_result(what, round, slot->what.result);
    if (memcmp(slot->memory, slot->before, slot->n_bytes) != 0)
        return CVY_FAIL(CVY_ERR_FAILED, "%s wrote to a member that needs no result", slot->what.name);
    return CVY_OK;
}

static cvy_status reduce_rounds(struct member *me, struct reduce_pair *pair) {
    const struct reduce_case *what = me->context;
    for (int round = 0; round < what->n_rounds; round++) {
        for (int s = 0; s < 2; s++)
            pair_prepare(pair, me, round, s);
        for (int s = 0; s < 2; s++)
            CVY_TRY(me->transport->reduce_start(me->group, s, &pair->slots[s].what));
        for (int s = 0; s < 2; s++) {
            CVY_TRY(me->transport->reduce_wait(me->group, s));
            CVY_TRY(pair_check(&pair->slots[s], what, round + s));
        }
    }
    return CVY_OK;
}

static cvy_status reduce_main(struct member *me) {
    const struct reduce_case *what = me->context;
    size_t stride = what->n + GUARD, n = (MAX_SUMS + 1) * stride;
    float *memory;
    CVY_TRY(CVY_ALLOC(memory, 4 * n));
    for (size_t i = 0; i < 4 * n; i++)
        memory[i] = -1;
    struct reduce_pair pair = {0};
    for (int s = 0; s < 2; s++) {
        struct pair_slot *slot = &pair.slots[s];
        slot->memory = memory + (size_t)s * 2 * n;
        slot->before = slot->memory + n;
        slot->n_bytes = n * sizeof *memory;
        for (int k = 0; k < MAX_SUMS; k++)
            slot->sums[k] = slot->memory + (size_t)k * stride;
    }
    cvy_status status = reduce_rounds(me, &pair);
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

static void test_reduce_to_one(void **state) {
    static const size_t sizes[] = {0, 1, 17, 515};
    for (int n_shards = 1; n_shards <= 9; n_shards += 2) {
        for (int n_members = 1; n_members <= 5; n_members++) {
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                struct reduce_case what = {
                    .n_shards = n_shards, .n_rounds = n_members + 1, .n = sizes[i], .is_to_one = true};
                run_members_ok(*state, n_members, reduce_main, &what);
            }
        }
    }
}

static void test_more_members_than_cores(void **state) {
    struct reduce_case what = {.n_shards = 20, .n_rounds = 20, .n = 77};
    run_members_ok(*state, MAX_MEMBERS, reduce_main, &what);
}

/* Sums that go in many pieces. */
static void test_reduce_much(void **state) {
    for (int n_members = 2; n_members <= 3; n_members++) {
        struct reduce_case what = {.n_shards = 3, .n_rounds = 1, .n = 1200003};
        run_members_ok(*state, n_members, reduce_main, &what);
    }
}

#define REDUCTION_TESTS(transport)                                 \
    cmocka_unit_test_prestate(test_reduce_is_the_tree, transport), \
        cmocka_unit_test_prestate(test_reduce_to_one, transport),  \
        cmocka_unit_test_prestate(test_reduce_much, transport),    \
        cmocka_unit_test_prestate(test_more_members_than_cores, transport)

#endif

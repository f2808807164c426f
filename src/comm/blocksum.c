/* Goes through the range in blocks that stay in the first-level cache: the tree's inner nodes never reach
   memory, each partial is read once and each result written once.
   Invariant: a block's results are written after all its partials were read, so they may be the
   same memory. */
#include "comm/blocksum.h"

#include "base/clones.h"

#include <assert.h>
#include <string.h>

enum {
    BLOCK = 512, /* floats: 2 KB */
    MAX_DEPTH =
        33, /* nodes on the stack: the partials start at shard 0, so levels fall from 31 to 0, and one more */
};

/* Vectors in the compilers' notation; sums have the same bits with all instruction sets. */
typedef float floats __attribute__((vector_size(64), aligned(4), may_alias));
enum { LANES = sizeof(floats) / sizeof(float) };

static inline floats *vector_at(float *from) { return (floats *)from; }
static inline const floats *const_vector_at(const float *from) { return (const floats *)from; }

/* sum = a + b; `sum` may be either. */
CVY_CLONES static void cvy_blocksum_add(float *sum, const float *a, const float *b, size_t n) {
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        *vector_at(sum + i) = *const_vector_at(a + i) + *const_vector_at(b + i);
    for (; i < n; i++)
        sum[i] = a[i] + b[i];
}

/* The same into two places. */
CVY_CLONES static void cvy_blocksum_add_twice(float *sum, float *copy, const float *a, const float *b,
                                              size_t n) {
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        floats both = *const_vector_at(a + i) + *const_vector_at(b + i);
        *vector_at(sum + i) = both;
        *vector_at(copy + i) = both;
    }
    for (; i < n; i++) {
        float both = a[i] + b[i];
        sum[i] = copy[i] = both;
    }
}

/* The root, a + b, to all that want it. */
static void add_root(const struct cvy_blocksum *what, size_t at, const float *a, const float *b, size_t n) {
    float *const *results = what->results;
    if (what->n_results == 1)
        cvy_blocksum_add(results[0] + at, a, b, n);
    else if (what->n_results > 1)
        cvy_blocksum_add_twice(results[0] + at, results[1] + at, a, b, n);
    for (int32_t r = 2; r < what->n_results; r++)
        memcpy(results[r] + at, results[0] + at, n * sizeof(float));
}

/* Adds up one block; `inner` holds the nodes between partials and root. */
static void sum_block(const struct cvy_blocksum *what, size_t at, size_t n, float inner[MAX_DEPTH][BLOCK]) {
    const float *node[MAX_DEPTH] = {what->partials[0] + at};
    int32_t top = 0;
    for (int32_t p = 1; p < what->n_partials; p++) {
        node[++top] = what->partials[p] + at;
        for (uint8_t i = 0; i < what->n_adds[p]; i++, top--) {
            assert(top > 0);
            if (p == what->n_partials - 1 && top == 1) {
                add_root(what, at, node[0], node[1], n);
                return;
            }
            cvy_blocksum_add(inner[top - 1], node[top - 1], node[top], n);
            node[top - 1] = inner[top - 1];
        }
    }
}

void cvy_blocksum_run(const struct cvy_blocksum *what, size_t begin, size_t end) {
    _Alignas(64) float inner[MAX_DEPTH][BLOCK];
    for (int32_t r = 0; r < what->n_results && what->n_partials == 1; r++) {
        if (what->results[r] != what->partials[0] && end > begin)
            memcpy(what->results[r] + begin, what->partials[0] + begin, (end - begin) * sizeof(float));
    }
    for (size_t at = begin; at < end && what->n_partials > 1; at += BLOCK)
        sum_block(what, at, end - at < BLOCK ? end - at : BLOCK, inner);
}

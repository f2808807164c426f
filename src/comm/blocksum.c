/* Goes through the range in blocks that stay in the first-level cache: the tree's inner nodes never reach
   memory, each partial is read once and each result written once.
   Invariant: a block's results are written after all its partials were read, so they may be the
   same memory. */
#include "comm/blocksum.h"

#include <assert.h>
#include <string.h>

enum {
    BLOCK = 512, /* floats: 2 KB */
    MAX_DEPTH =
        33, /* nodes on the stack: the partials start at shard 0, so levels fall from 31 to 0, and one more */
};

static void add(float *restrict sum, const float *a, const float *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        sum[i] = a[i] + b[i];
}

/* sum += b: the lower shards stand on the left. */
static void add_to(float *restrict sum, const float *restrict b, size_t n) {
    for (size_t i = 0; i < n; i++)
        sum[i] = sum[i] + b[i];
}

/* The root's values for one block: where a partial alone is the root it is not copied. */
static const float *sum_block(const struct cvy_blocksum *what, size_t begin, size_t n,
                              float inner[MAX_DEPTH][BLOCK]) {
    const float *node[MAX_DEPTH] = {what->partials[0] + begin};
    int32_t top = 0;
    for (int32_t p = 1; p < what->n_partials; p++) {
        node[++top] = what->partials[p] + begin;
        for (uint8_t i = 0; i < what->n_adds[p]; i++, top--) {
            assert(top > 0);
            float *sum = inner[top - 1];
            if (node[top - 1] == sum)
                add_to(sum, node[top], n);
            else
                add(sum, node[top - 1], node[top], n);
            node[top - 1] = sum;
        }
    }
    return node[0];
}

void cvy_blocksum_run(const struct cvy_blocksum *what, size_t begin, size_t end) {
    _Alignas(64) float inner[MAX_DEPTH][BLOCK];
    for (size_t at = begin; at < end; at += BLOCK) {
        size_t n = end - at < BLOCK ? end - at : BLOCK;
        const float *sum = sum_block(what, at, n, inner);
        for (int32_t r = 0; r < what->n_results; r++) {
            if (what->results[r] + at != sum)
                memcpy(what->results[r] + at, sum, n * sizeof *sum);
        }
    }
}

/* The kernel of an all-reduce in shared memory: sums a range of all partial sums in the tree over shards and
   writes it to every member's result, in one pass over memory. */
#ifndef CVY_COMM_BLOCKSUM_H
#define CVY_COMM_BLOCKSUM_H

#include <stddef.h>
#include <stdint.h>

struct cvy_blocksum {
    int32_t n_partials;
    const float *const *partials; /* in the order of their shards */
    const uint8_t *n_adds;        /* cvy_tree_plan */
    int32_t n_results;
    float *const *results; /* each may be one of the partials, else they do not overlap */
};

/* Where the slice of worker i of n begins when they share n_floats; i = n: the end. Slices are cut at cache lines, so
   that no two workers write to one. */
enum { CVY_SLICE_FLOATS = 16 };
static inline size_t cvy_slice_begin(size_t n_floats, int i, int n) {
    size_t n_lines = (n_floats + CVY_SLICE_FLOATS - 1) / CVY_SLICE_FLOATS;
    size_t begin = n_lines * (size_t)i / (size_t)n * CVY_SLICE_FLOATS;
    return begin < n_floats ? begin : n_floats;
}

/* Elements begin .. end - 1. */
void cvy_blocksum_run(const struct cvy_blocksum *what, size_t begin, size_t end);

#endif

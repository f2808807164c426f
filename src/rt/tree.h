/* The tree over shards: why the number of devices never changes the result.
   Floating-point addition is not associative, so a sum over shards is defined by one fixed tree, and every
   device count, transport and schedule adds in that tree.

   The tree of S shards. Node (level l, first i), i a multiple of 2^l below S, stands for the shards
   i .. min(i + 2^l, S) - 1. Its value:
       value(0, i)     = what shard i gave
       value(l + 1, i) = value(l, i) + value(l, i + 2^l)   when i + 2^l < S
                       = value(l, i)                       otherwise: cut at S, it passes up unchanged
   The root is (L, 0) with the smallest L such that 2^L >= S. A cut node counts as complete once all its
   shards below S are in: with S = 3, shard 2 alone is (0, 2) and at the same time (1, 2), the root's right
   child.

   A device owns consecutive shards and computes them in order. It keeps a stack of sums, as a binary counter
   keeps digits: shard s goes into the stack's next free position k; then, while the two uppermost nodes are
   siblings, the upper one is added to the lower one. The recipe:

       struct cvy_tree_stack stack = {.n_shards = S};
       for each own shard s:
           k = stack.n;                                   compute shard s into sum k
           for (n_adds = cvy_tree_push(&stack, s, 0); n_adds > 0; n_adds--, k--)
               emit "sum[k - 1] += sum[k]"                sum[k - 1] holds the lower shards

   In the end the stack holds the fewest nodes that the own shards make: the device's partial sums. The same
   push over the partial sums of all devices, in the order of their shards, ends in the root: the all-reduce.
   So local adds and all-reduce together perform exactly the tree's S - 1 additions, wherever the cuts are.

   Everything here is Local and pure. */
#ifndef CVY_RT_TREE_H
#define CVY_RT_TREE_H

#include "rt/program.h"

enum {
    CVY_TREE_DEPTH =
        64, /* nodes on a stack: sizes grow, then shrink, by powers of two below 2^31; and one more */
};

struct cvy_tree_stack {
    int32_t n_shards;
    int32_t n;    /* nodes on the stack now */
    int32_t peak; /* the most there ever were, before adding: how many sums the recipe needs */
    struct cvy_tree_node {
        int32_t level, first;
    } node[CVY_TREE_DEPTH];
};

/* Puts node (level, first) on top; its shards must follow those of the node below. Returns how many adds
   follow, each of the uppermost node to the one below it, which then is the uppermost. */
int32_t cvy_tree_push(struct cvy_tree_stack *stack, int32_t first, int32_t level);

/* The shards of device d of n_devices: floor(d S / D) .. floor((d + 1) S / D) - 1. *n may become 0. */
void cvy_tree_shards(int32_t n_shards, int32_t n_devices, int32_t device, int32_t *first, int32_t *n);

/* The partial sums that device d of n_devices is left with after the recipe, by rising `first`; partial k
   lies in sum k. Returns their number: 0 for a device without shards, never more than it has shards nor than
   CVY_TREE_DEPTH. *n_sums (may be NULL) = sums that the recipe needs. The lists of all devices, one after
   the other, are what struct cvy_reduction wants. */
int32_t cvy_tree_partials(int32_t n_shards, int32_t n_devices, int32_t device, struct cvy_partial *out,
                          int32_t *n_sums);

/* What a reduction does with the partial sums of all devices, in order: n_adds[p] = adds that follow once
   partial p was put on the stack. CVY_ERR_FAILED when the partials do not stand for each shard once. */
cvy_status cvy_tree_plan(int32_t n_shards, const struct cvy_partial *partials, int32_t n_partials,
                         uint8_t *n_adds);

#endif

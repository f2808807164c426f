/* The tree over shards, as a stack machine. Invariant: the nodes of a stack stand for consecutive shards, and
   no two neighbours are siblings, nor could any node pass up unchanged. */
#include "rt/tree.h"

#include <assert.h>

/* First shard behind node (level, first), cut at S. */
static int64_t node_end(int32_t n_shards, const struct cvy_tree_node *node) {
    int64_t end = node->first + ((int64_t)1 << node->level);
    return end < n_shards ? end : n_shards;
}

/* Passes a node up while it is a left child whose sibling lies beyond S: its parent has the same value. */
static void pass_up(int32_t n_shards, struct cvy_tree_node *node) {
    while (((int64_t)1 << node->level) < n_shards && ((node->first >> node->level) & 1) == 0 &&
           node_end(n_shards, node) == n_shards)
        node->level++;
}

int32_t cvy_tree_push(struct cvy_tree_stack *stack, int32_t first, int32_t level) {
    assert(stack->n < CVY_TREE_DEPTH);
    int32_t n_adds = 0;
    struct cvy_tree_node *top = &stack->node[stack->n++];
    if (stack->peak < stack->n)
        stack->peak = stack->n;
    *top = (struct cvy_tree_node){.level = level, .first = first};
    pass_up(stack->n_shards, top);
    while (stack->n > 1 && top[-1].level == top->level && top[-1].first + (1 << top->level) == top->first &&
           ((top->first >> top->level) & 1) == 1) {
        stack->n--;
        top--;
        top->level++;
        n_adds++;
        pass_up(stack->n_shards, top);
    }
    return n_adds;
}

void cvy_tree_shards(int32_t n_shards, int32_t n_devices, int32_t device, int32_t *first, int32_t *n) {
    int32_t begin = (int32_t)((int64_t)device * n_shards / n_devices);
    int32_t end = (int32_t)(((int64_t)device + 1) * n_shards / n_devices);
    *first = begin;
    *n = end - begin;
}

int32_t cvy_tree_partials(int32_t n_shards, int32_t n_devices, int32_t device, struct cvy_partial *out,
                          int32_t *n_sums) {
    struct cvy_tree_stack stack = {.n_shards = n_shards};
    int32_t first, n;
    cvy_tree_shards(n_shards, n_devices, device, &first, &n);
    for (int32_t s = first; s < first + n; s++)
        cvy_tree_push(&stack, s, 0);
    for (int32_t k = 0; k < stack.n; k++)
        out[k] = (struct cvy_partial){
            .first = stack.node[k].first, .level = stack.node[k].level, .device = device, .sum = k};
    if (n_sums)
        *n_sums = stack.peak;
    return stack.n;
}

cvy_status cvy_tree_plan(int32_t n_shards, const struct cvy_partial *partials, int32_t n_partials,
                         uint8_t *n_adds) {
    struct cvy_tree_stack stack = {.n_shards = n_shards};
    int64_t next = 0;
    for (int32_t p = 0; p < n_partials; p++) {
        struct cvy_tree_node node = {.level = partials[p].level, .first = partials[p].first};
        if (node.first != next || node.first >= n_shards || node.level < 0 || node.level > 31 ||
            (node.first & (((int64_t)1 << node.level) - 1)) != 0)
            return CVY_FAIL(
                CVY_ERR_FAILED,
                "partial sum %d of %d (shard %d, level %d) does not fit into the tree of %d shards", p,
                n_partials, node.first, node.level, n_shards);
        next = node_end(n_shards, &node);
        n_adds[p] = (uint8_t)cvy_tree_push(&stack, node.first, node.level);
    }
    if (next != n_shards || n_shards < 1)
        return CVY_FAIL(CVY_ERR_FAILED, "the partial sums end at shard %lld of %d", (long long)next,
                        n_shards);
    return CVY_OK;
}

/* The tree over shards (rt/tree.h) in memory of a device: each addition is one call of its backend.
   A private part of the transports. */
#ifndef CVY_COMM_DEVICE_TREE_H
#define CVY_COMM_DEVICE_TREE_H

#include "rt/backend.h"

struct cvy_device_tree {
    int32_t n_partials;           /* at least 2 */
    const uint8_t *n_adds;        /* cvy_tree_plan */
    const float *const *partials; /* in the order of their shards; n floats each */
    size_t n;
    float *scratch; /* cvy_device_tree_inner nodes of n floats */
    float *root;    /* may be one of the partials */
};

/* The most nodes that are there at a time beside partial sums and root. Local. */
size_t cvy_device_tree_inner(const uint8_t *n_adds, int32_t n_partials);
/* Enqueues the additions, by the device's owner. Local. */
cvy_status cvy_device_tree_add(struct cvy_device *device, const struct cvy_device_tree *tree);

#endif

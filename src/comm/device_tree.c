/* See device_tree.h. */
#include "comm/device_tree.h"

#include "rt/tree.h"

size_t cvy_device_tree_inner(const uint8_t *n_adds, int32_t n_partials) {
    size_t most = 0;
    int32_t top = 0;
    for (int32_t p = 1; p < n_partials; p++) {
        top++;
        for (uint8_t i = 0; i < n_adds[p]; i++, top--) {
            bool is_root = p == n_partials - 1 && top == 1;
            if (!is_root && (size_t)top > most)
                most = (size_t)top;
        }
    }
    return most;
}

cvy_status cvy_device_tree_add(struct cvy_device *device, const struct cvy_device_tree *tree) {
    const float *node[CVY_TREE_DEPTH] = {tree->partials[0]};
    int32_t top = 0;
    for (int32_t p = 1; p < tree->n_partials; p++) {
        node[++top] = tree->partials[p];
        for (uint8_t i = 0; i < tree->n_adds[p]; i++, top--) {
            bool is_root = p == tree->n_partials - 1 && top == 1;
            float *sum = is_root ? tree->root : tree->scratch + (size_t)(top - 1) * tree->n;
            CVY_TRY(device->backend->add(device, sum, node[top - 1], node[top], tree->n));
            node[top - 1] = sum;
        }
    }
    return CVY_OK;
}

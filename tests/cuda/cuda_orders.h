/* For tests of the CUDA plugin on the stand-in: its random orders, and whether it is there at all. */
#ifndef CUDA_ORDERS_H
#define CUDA_ORDERS_H

#include "engine/session_matrix.h"

#include <stdio.h>
#include <stdlib.h>

/* Sanitizers make one order as slow as ten, and look at memory and threads, not at orders. */
#ifdef CVY_SANITIZED
enum { N_ORDERS = 2 };
#else
enum { N_ORDERS = 5 };
#endif

/* For what is opened next: the order, and whether GPUs reach each other's memory (else NCCL passes all on). */
static inline void choose_order(int seed, bool has_peers) {
    char text[16];
    snprintf(text, sizeof text, "%d", seed);
    assert_int_equal(setenv("FAKECUDA_SEED", text, 1), 0);
    assert_int_equal(setenv("FAKECUDA_PEERS", has_peers ? "1" : "0", 1), 0);
}

static inline void reset_order(void) {
    unsetenv("FAKECUDA_SEED");
    unsetenv("FAKECUDA_PEERS");
}

/* False: says why not. */
static inline bool has_plugin(void) {
    const struct cvy_backend *backend;
    if (cvy_backend_load("cuda", &backend) != CVY_ERR_UNSUPPORTED)
        return true;
    print_message("skipped: %s\n", cvy_error());
    return false;
}

#endif

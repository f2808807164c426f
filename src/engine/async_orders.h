/* For tests of the asynchronous backend: its random orders. */
#ifndef CVY_ENGINE_ASYNC_ORDERS_H
#define CVY_ENGINE_ASYNC_ORDERS_H

#include "engine/session_matrix.h"

#include <stdio.h>
#include <stdlib.h>

/* Orders tried for each setup. Sanitizers make one as slow as ten, and look at memory and threads, not at orders. */
#ifdef CVY_SANITIZED
enum { N_ORDERS = 2 };
#else
enum { N_ORDERS = 20 };
#endif

static inline void seed(int number) {
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    assert_int_equal(setenv("CVY_ASYNC_SEED", text, 1), 0);
}

#endif

/* A small interpreter for tests: evaluates a graph in doubles with the operators' reference kernels, node by
   node, so that a graph's meaning can be compared with anything. Every result is poisoned with NaN first.
   Failures are cmocka assertions. */
#ifndef CVY_TESTS_INTERPRET_H
#define CVY_TESTS_INTERPRET_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define assert_ok(call)                  \
    do {                                 \
        if ((call) != CVY_OK)            \
            fail_msg("%s", cvy_error()); \
    } while (0)

struct interpreter {
    const struct cvy_graph *g; /* may grow between calls */
    double **values;           /* per value; NULL until set or computed */
    size_t n;
};

static inline int64_t interpret_count(const struct cvy_graph *g, cvy_value v) {
    return cvy_shape_count(&cvy_graph_value(g, v)->desc.shape);
}

static inline void interpret_free(struct interpreter *in) {
    for (size_t v = 0; v < in->n; v++)
        free(in->values[v]);
    free(in->values);
    in->values = NULL;
    in->n = 0;
}

/* The memory of value v, NaN when it had none. */
static inline double *interpret_value(struct interpreter *in, cvy_value v) {
    size_t n = in->g->values.n;
    if (n > in->n) {
        in->values = realloc(in->values, n * sizeof *in->values);
        assert_non_null(in->values);
        memset(in->values + in->n, 0, (n - in->n) * sizeof *in->values);
        in->n = n;
    }
    if (!in->values[v]) {
        int64_t count = interpret_count(in->g, v);
        in->values[v] = malloc((size_t)(count + 1) * sizeof(double));
        assert_non_null(in->values[v]);
        for (int64_t k = 0; k < count; k++)
            in->values[v][k] = NAN;
    }
    return in->values[v];
}

/* Runs node `index` on what its inputs hold now. */
static inline void interpret_node(struct interpreter *in, size_t index) {
    enum { MAX = 64 };
    const struct cvy_node *node = &in->g->nodes.data[index];
    const double *from[MAX] = {0};
    double *to[MAX];
    struct cvy_desc from_desc[MAX], to_desc[MAX];
    assert_true(node->n_in <= MAX && node->n_out <= MAX);
    for (int i = 0; i < node->n_in; i++) {
        bool is_absent = node->in[i] == CVY_NONE;
        from[i] = is_absent ? NULL : interpret_value(in, node->in[i]);
        from_desc[i] = is_absent ? CVY_DESC_ABSENT : cvy_graph_value(in->g, node->in[i])->desc;
    }
    for (int o = 0; o < node->n_out; o++) {
        to_desc[o] = cvy_graph_value(in->g, node->out[o])->desc;
        to[o] = interpret_value(in, node->out[o]);
        for (int64_t k = 0; k < cvy_shape_count(&to_desc[o].shape); k++)
            to[o][k] = NAN;
    }
    node->op->reference(&(struct cvy_reference){.attrs = node->attrs,
                                                .n_in = node->n_in,
                                                .n_out = node->n_out,
                                                .in_desc = from_desc,
                                                .out_desc = to_desc,
                                                .in = from,
                                                .out = to});
}

/* Runs all nodes of the graph, in its order. */
static inline void interpret_all(struct interpreter *in) {
    for (size_t i = 0; i < in->g->nodes.n; i++)
        interpret_node(in, i);
}

/* The seed of this run: $CVY_TEST_SEED, or a fresh one. Printed, so that a failure can be repeated. */
static inline uint64_t test_seed(void) {
    const char *text = getenv("CVY_TEST_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = text ? strtoull(text, NULL, 10) : ((uint64_t)now.tv_nsec << 20 ^ (uint64_t)getpid());
    print_message("CVY_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

#endif

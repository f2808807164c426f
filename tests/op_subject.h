/* One operator call as a graph, for tests: inputs "in0", "in1", …, the node, and on demand the nodes of its
   gradient with respect to every input, fed by the input "gout". */
#ifndef CVY_TESTS_OP_SUBJECT_H
#define CVY_TESTS_OP_SUBJECT_H

#include "interpret.h"
#include "ops/cases.h"

struct op_subject {
    struct cvy_graph *g;
    struct interpreter in;
    size_t node;    /* the operator's; a gradient's nodes stand behind it */
    cvy_value gout; /* of output 0; CVY_NONE before op_subject_differentiate */
    cvy_value gin[CVY_CASE_MAX];
};

static inline const struct cvy_node *op_subject_node(const struct op_subject *s) {
    return &s->g->nodes.data[s->node];
}

static inline void op_subject_open(struct op_subject *s, const struct cvy_op *op, const void *attrs,
                                   const struct cvy_desc *in, int n_in) {
    cvy_value v[CVY_CASE_MAX];
    char name[16];
    *s = (struct op_subject){.gout = CVY_NONE};
    assert_ok(cvy_graph_new(&s->g));
    s->in.g = s->g;
    for (int i = 0; i < n_in; i++) {
        v[i] = CVY_NONE;
        snprintf(name, sizeof name, "in%d", i);
        if (!cvy_desc_is_absent(&in[i]))
            assert_ok(cvy_graph_add_value(s->g, name, &in[i], CVY_VALUE_INPUT, &v[i]));
    }
    assert_ok(cvy_graph_add_node(s->g,
                                 &(struct cvy_node_spec){.op = op,
                                                         .name = "subject",
                                                         .attrs = attrs,
                                                         .in = v,
                                                         .n_in = n_in,
                                                         .phase = CVY_PHASE_FORWARD,
                                                         .stage = -1},
                                 NULL));
    s->node = s->g->nodes.n - 1;
}

/* Emits the gradient; gin[i] is CVY_NONE where the operator gives none. */
static inline void op_subject_differentiate(struct op_subject *s) {
    const struct cvy_node node = *op_subject_node(s);
    const struct cvy_desc desc = cvy_graph_value(s->g, node.out[0])->desc;
    cvy_value gout[CVY_MAX_OUT];
    uint32_t want = 0;
    assert_ok(cvy_graph_add_value(s->g, "gout", &desc, CVY_VALUE_INPUT, &s->gout));
    for (int o = 0; o < node.n_out; o++)
        gout[o] = o == 0 ? s->gout : CVY_NONE;
    for (int i = 0; i < node.n_in; i++) {
        s->gin[i] = CVY_NONE;
        want |= node.in[i] != CVY_NONE ? 1u << i : 0;
    }
    assert_ok(node.op->grad(s->g, &node, want, gout, s->gin));
    assert_ok(cvy_graph_verify(s->g));
}

static inline void op_subject_close(struct op_subject *s) {
    interpret_free(&s->in);
    cvy_graph_free(s->g);
    s->g = NULL;
}

#endif

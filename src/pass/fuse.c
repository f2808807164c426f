/* fuse: batch_norm -> relu and batch_norm -> add -> relu become one batch_norm with the attribute `relu` and
   the input `residual`. A value between them must have no other reader. One table line per pattern. */
#include "pass/pass.h"

#include <stdlib.h>
#include <string.h>

struct pattern {
    const char *head, *middle, *tail; /* middle may be NULL; it has two inputs, one of them the head's */
    const char *flag;                 /* the head's attribute that stands for the tail */
    int extra_in;                     /* the head's input that takes the middle's other input */
};

static const struct pattern patterns[] = {
    {"batch_norm", "add", "relu", "relu", 5},
    {"batch_norm", NULL, "relu", "relu", -1},
};

struct match {                     /* per node: what becomes of it */
    const struct pattern *pattern; /* at the tail: fuse here */
    int32_t head;                  /* at the tail: the head's node */
    cvy_value extra;               /* at the tail: the residual */
    bool is_absorbed;              /* head or middle of a match */
};

struct fuser {
    const struct cvy_graph *g;
    int *n_readers;        /* per value */
    int32_t *reader;       /* per value: one of them */
    struct match *matches; /* per node */
};

static bool is_op(const struct cvy_node *node, const char *name) { return strcmp(node->op->name, name) == 0; }

static cvy_status count_readers(struct fuser *f) {
    CVY_TRY(CVY_ALLOC(f->n_readers, f->g->values.n));
    CVY_TRY(CVY_ALLOC(f->reader, f->g->values.n));
    CVY_TRY(CVY_ALLOC(f->matches, f->g->nodes.n));
    for (size_t i = 0; i < f->g->nodes.n; i++) {
        const struct cvy_node *node = &f->g->nodes.data[i];
        for (int k = 0; k < node->n_in; k++) {
            if (node->in[k] != CVY_NONE) {
                f->n_readers[node->in[k]]++;
                f->reader[node->in[k]] = (int32_t)i;
            }
        }
    }
    for (size_t i = 0; i < f->g->outputs.n; i++) {
        f->n_readers[f->g->outputs.data[i].value] += 2; /* an output may not disappear */
    }
    return CVY_OK;
}

/* The only reader of v, if it is an `op` that is not part of a match yet; else NULL. */
static const struct cvy_node *sole_reader(const struct fuser *f, cvy_value v, const char *op) {
    if (f->n_readers[v] != 1) {
        return NULL;
    }
    const struct cvy_node *node = &f->g->nodes.data[f->reader[v]];
    const struct match *m = &f->matches[f->reader[v]];
    return is_op(node, op) && !m->is_absorbed && !m->pattern ? node : NULL;
}

static bool try_pattern(struct fuser *f, int32_t head, const struct pattern *p) {
    const struct cvy_node *nodes = f->g->nodes.data;
    const struct cvy_node *node = &nodes[head], *middle = NULL, *tail;
    if (!is_op(node, p->head) || f->matches[head].is_absorbed) {
        return false;
    }
    cvy_value link = node->out[0], extra = CVY_NONE;
    if (p->middle) {
        middle = sole_reader(f, link, p->middle);
        if (!middle || middle->in[0] == middle->in[1]) {
            return false;
        }
        extra = middle->in[0] == link ? middle->in[1] : middle->in[0];
        if (!cvy_desc_equal(&f->g->values.data[extra].desc, &f->g->values.data[link].desc)) {
            return false;
        }
        link = middle->out[0];
    }
    tail = sole_reader(f, link, p->tail);
    if (!tail) {
        return false;
    }
    f->matches[head].is_absorbed = true;
    if (middle) {
        f->matches[middle - nodes].is_absorbed = true;
    }
    f->matches[tail - nodes] = (struct match){.pattern = p, .head = head, .extra = extra};
    return true;
}

static cvy_status emit_fused(const struct fuser *f, const struct match *m, const struct cvy_node *tail,
                             struct cvy_graph *to, cvy_value *map) {
    struct cvy_node head = f->g->nodes.data[m->head];
    cvy_value in[8];
    memcpy(in, head.in, (size_t)head.n_in * sizeof *in);
    if (m->pattern->extra_in >= 0) {
        in[m->pattern->extra_in] = m->extra;
    }
    head.in = in;
    CVY_TRY(cvy_node_set_flag(&to->pool, &head, m->pattern->flag, true));
    CVY_TRY(cvy_graph_copy_node(to, f->g, &head, map));
    map[tail->out[0]] = to->nodes.data[to->nodes.n - 1].out[0];
    return CVY_OK;
}

static cvy_status copy_fused(const struct fuser *f, struct cvy_graph *to, cvy_value *map) {
    for (size_t i = 0; i < f->g->nodes.n; i++) {
        const struct cvy_node *node = &f->g->nodes.data[i];
        const struct match *m = &f->matches[i];
        if (m->pattern) {
            CVY_TRY(emit_fused(f, m, node, to, map));
        } else if (!m->is_absorbed && node->phase != CVY_PHASE_UPDATE) {
            CVY_TRY(cvy_graph_copy_node(to, f->g, node, map));
        }
    }
    for (size_t i = 0; i < f->g->nodes.n;
         i++) { /* last: they read what a fused node makes later than before */
        if (f->g->nodes.data[i].phase == CVY_PHASE_UPDATE) {
            CVY_TRY(cvy_graph_copy_node(to, f->g, &f->g->nodes.data[i], map));
        }
    }
    return cvy_graph_copy_tables(to, f->g, map);
}

cvy_status cvy_pass_fuse(const struct cvy_graph *g, struct cvy_graph **out) {
    struct fuser f = {.g = g};
    struct cvy_graph *to = NULL;
    cvy_value *map = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(count_readers(&f));
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
        for (size_t i = 0; i < g->nodes.n; i++) {
            try_pattern(&f, (int32_t)i, &patterns[p]);
        }
    }
    CVY_TRY_OUT(cvy_graph_copy_roots(g, &to, &map));
    CVY_TRY_OUT(copy_fused(&f, to, map));
    *out = to;
    to = NULL;
out:
    cvy_graph_free(to);
    free(map);
    free(f.n_readers);
    free(f.reader);
    free(f.matches);
    return status;
}

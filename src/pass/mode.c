/* mode: the graph of training or of evaluation, out of the one that the user built.
   Keeps what the wanted outputs need. Every operator that behaves differently in training has a boolean
   attribute called "training"; nothing else tells the two apart. */
#include "pass/pass.h"

#include <stdlib.h>
#include <string.h>

/* needed[n]: a wanted output depends on node n. */
static void mark_needed(const struct cvy_graph *g, const bool *wanted, bool *needed) {
    for (size_t i = g->nodes.n; i-- > 0;) {
        const struct cvy_node *node = &g->nodes.data[i];
        for (int o = 0; o < node->n_out; o++) {
            needed[i] |= wanted[node->out[o]];
        }
    }
}

static bool makes_wanted(const struct cvy_graph *g, bool *wanted, bool *needed, bool is_training) {
    bool changed = false;
    for (size_t i = g->nodes.n; i-- > 0;) {
        const struct cvy_node *node = &g->nodes.data[i];
        bool keep = needed[i] || (is_training && node->phase == CVY_PHASE_UPDATE);
        for (int k = 0; keep && k < node->n_in; k++) {
            if (node->in[k] != CVY_NONE && !wanted[node->in[k]]) {
                wanted[node->in[k]] = changed = true;
            }
        }
        needed[i] = keep;
    }
    return changed;
}

static cvy_status copy_needed(const struct cvy_graph *g, const bool *needed, bool is_training,
                              struct cvy_graph *to, cvy_value *map) {
    for (size_t i = 0; i < g->nodes.n; i++) {
        struct cvy_node node = g->nodes.data[i];
        if (!needed[i])
            continue;
        CVY_TRY(cvy_node_set_flag(&to->pool, &node, "training", is_training));
        CVY_TRY(cvy_graph_copy_node(to, g, &node, map));
    }
    return CVY_OK;
}

cvy_status cvy_pass_mode(const struct cvy_graph *g, bool is_training, const char *const *outputs,
                         int n_outputs, struct cvy_graph **out) {
    CVY_TRY(cvy_graph_status(g));
    bool *wanted = NULL, *needed = NULL;
    cvy_value *map = NULL;
    struct cvy_graph *to = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(CVY_ALLOC(wanted, g->values.n));
    CVY_TRY_OUT(CVY_ALLOC(needed, g->nodes.n));
    for (int i = 0; i < n_outputs; i++) {
        cvy_value v = cvy_graph_output(g, outputs[i]);
        if (v != CVY_NONE) {
            wanted[v] = true;
        }
    }
    do {
        mark_needed(g, wanted, needed);
    } while (makes_wanted(g, wanted, needed, is_training));

    CVY_TRY_OUT(cvy_graph_copy_roots(g, &to, &map));
    CVY_TRY_OUT(copy_needed(g, needed, is_training, to, map));
    for (int i = 0; i < n_outputs; i++) {
        cvy_value v = cvy_graph_output(g, outputs[i]);
        if (v != CVY_NONE) {
            CVY_TRY_OUT(cvy_graph_set_output(to, outputs[i], map[v]));
        }
    }
    *out = to;
    to = NULL;
out:
    cvy_graph_free(to);
    free(map);
    free(needed);
    free(wanted);
    return status;
}

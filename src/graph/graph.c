/* The graph's values: made once, named, found by name, never moved or deleted.
   Invariant: `names` holds exactly the values' names, so a name means one value. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

cvy_status cvy_graph_new(cvy_graph **out) {
    struct cvy_graph *g;
    CVY_TRY(CVY_ALLOC(g, 1));
    g->stage = -1;
    g->next_id = 1;
    g->batch = CVY_BUILD_BATCH;
    *out = g;
    return CVY_OK;
}

void cvy_graph_free(cvy_graph *g) {
    if (!g)
        return;
    cvy_vec_free(&g->values);
    cvy_vec_free(&g->nodes);
    cvy_vec_free(&g->reducibles);
    cvy_vec_free(&g->outputs);
    cvy_vec_free(&g->auxiliaries);
    cvy_names_free(&g->names);
    cvy_pool_free(&g->pool);
    free(g);
}

static cvy_status check_name(const char *name) {
    if (*name == '\0' || strcmp(name, "-") == 0)
        return CVY_FAIL(CVY_ERR_USAGE, "a tensor needs a name, and \"%s\" is none; give its layer one", name);
    for (const char *c = name; *c; c++) {
        if ((unsigned char)*c <= ' ' || *c == 127 || strchr("@,;=()[]", *c))
            return CVY_FAIL(CVY_ERR_USAGE,
                            "the name \"%.200s\" has a blank or one of @ , ; = ( ) [ ] in it; take it out",
                            name);
    }
    return CVY_OK;
}

cvy_status cvy_graph_add_value(struct cvy_graph *g, const char *name, const struct cvy_desc *desc,
                               enum cvy_value_kind kind, cvy_value *out) {
    CVY_TRY(check_name(name));
    CVY_TRY(cvy_desc_check(desc));
    if (cvy_desc_is_absent(desc))
        return CVY_FAIL(CVY_ERR_USAGE, "%.200s has no dimensions; a single number is written f32[1]", name);
    if (cvy_graph_find(g, name) != CVY_NONE)
        return CVY_FAIL(CVY_ERR_USAGE, "the name \"%.200s\" is taken; every layer needs one of its own",
                        name);
    if (g->values.n >= INT32_MAX)
        return CVY_FAIL(CVY_ERR_USAGE, "too many tensors in one graph");
    char *copy;
    CVY_TRY(cvy_pool_strdup(&g->pool, name, &copy));
    CVY_TRY(cvy_vec_grow(&g->values, 1));
    cvy_value v = (cvy_value)g->values.n;
    CVY_TRY(cvy_names_add(&g->names, copy, v));
    g->values.data[g->values.n++] =
        (struct cvy_value_info){.name = copy, .desc = *desc, .kind = kind, .node = -1};
    *out = v;
    return CVY_OK;
}

struct cvy_value_info *cvy_graph_value(const struct cvy_graph *g, cvy_value v) {
    return &g->values.data[v];
}

cvy_value cvy_graph_find(const struct cvy_graph *g, const char *name) {
    return cvy_names_find(&g->names, name);
}

cvy_status cvy_graph_host_input(struct cvy_graph *g, const char *name, const struct cvy_desc *desc,
                                bool has_batch, cvy_value *out) {
    cvy_value v = cvy_graph_find(g, name);
    if (v == CVY_NONE) {
        CVY_TRY(cvy_graph_add_value(g, name, desc, CVY_VALUE_INPUT, out));
        cvy_graph_value(g, *out)->has_batch = has_batch;
        return CVY_OK;
    }
    const struct cvy_value_info *info = cvy_graph_value(g, v);
    if (info->kind != CVY_VALUE_INPUT || info->has_batch != has_batch || !cvy_desc_equal(&info->desc, desc))
        return CVY_FAIL(CVY_ERR_USAGE, "the name \"%s\" is taken; the input of that name needs it", name);
    *out = v;
    return CVY_OK;
}

cvy_value cvy_graph_output(const struct cvy_graph *g, const char *name) {
    for (size_t i = 0; i < g->outputs.n; i++) {
        if (strcmp(g->outputs.data[i].name, name) == 0)
            return g->outputs.data[i].value;
    }
    return CVY_NONE;
}

cvy_status cvy_graph_set_output(struct cvy_graph *g, const char *name, cvy_value v) {
    CVY_TRY(check_name(name));
    if (v < 0 || (size_t)v >= g->values.n)
        return CVY_FAIL(CVY_ERR_USAGE, "output \"%s\" is set to a value that is not of this graph", name);
    for (size_t i = 0; i < g->outputs.n; i++) {
        if (strcmp(g->outputs.data[i].name, name) == 0) {
            g->outputs.data[i].value = v;
            return CVY_OK;
        }
    }
    char *copy;
    CVY_TRY(cvy_pool_strdup(&g->pool, name, &copy));
    return cvy_vec_push(&g->outputs, (struct cvy_named_output){copy, v});
}

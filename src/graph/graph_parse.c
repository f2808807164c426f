/* Reads the text form of a graph. Nodes are added as a builder adds them, so every rule of cvy_graph_add_node
   holds; what the text says about outputs is then compared with what the operator made. */
#include "graph/graph_text.h"
#include "graph/scan.h"

#include <stdlib.h>
#include <string.h>

/* One node's line. Words are borrowed from the scan. */
struct node_line {
    CVY_VEC(const char *) out_names;
    CVY_VEC(struct cvy_desc) out_descs;
    CVY_VEC(cvy_value) in;
    void *attrs;
    struct cvy_node_spec spec;
    int32_t bucket, algorithm;
};

static void free_line(struct node_line *line) {
    cvy_vec_free(&line->out_names);
    cvy_vec_free(&line->out_descs);
    cvy_vec_free(&line->in);
    free(line->attrs);
}

static cvy_status parse_value(const struct cvy_graph *g, struct cvy_scan *scan, cvy_value *out) {
    const char *name;
    CVY_TRY(cvy_scan_name(scan, &name));
    *out = cvy_graph_find(g, name);
    return *out == CVY_NONE ? CVY_FAIL(CVY_ERR_DATA, "no value called \"%.60s\" stands above", name) : CVY_OK;
}

/* "f32[2,3]", with or without "@LAYOUT". */
static cvy_status parse_desc(struct cvy_scan *scan, struct cvy_desc *out) {
    const char *word;
    char text[160] = "";
    CVY_TRY(cvy_scan_name(scan, &word));
    size_t n = strcspn(word, "@");
    if (n < sizeof text)
        memcpy(text, word, n);
    return cvy_desc_parse(text, out);
}

static cvy_status parse_init(struct cvy_scan *scan, struct cvy_init *out) {
    int kind;
    CVY_TRY(cvy_scan_choice(scan, cvy_init_names, CVY_N_INITS, &kind));
    *out = (struct cvy_init){.kind = (enum cvy_init_kind)kind};
    if (!cvy_init_has_scale(out->kind))
        return CVY_OK;
    CVY_TRY(cvy_scan_expect(scan, "("));
    if (!cvy_parse_f64(cvy_scan_peek(scan), &out->scale))
        return CVY_FAIL(CVY_ERR_DATA, "\"%.60s\" is no number", cvy_scan_peek(scan));
    cvy_scan_word(scan);
    return cvy_scan_expect(scan, ")");
}

static cvy_status parse_root(struct cvy_graph *g, struct cvy_scan *scan, enum cvy_value_kind kind) {
    const char *name;
    struct cvy_desc desc;
    cvy_value v;
    CVY_TRY(cvy_scan_name(scan, &name));
    CVY_TRY(parse_desc(scan, &desc));
    CVY_TRY(cvy_graph_add_value(g, name, &desc, kind, &v));
    struct cvy_value_info *info = cvy_graph_value(g, v);
    info->has_batch = cvy_scan_accept(scan, "batch");
    return *cvy_scan_peek(scan) ? parse_init(scan, &info->init) : CVY_OK;
}

/* "NAME DESC, NAME DESC =" */
static cvy_status parse_outputs(struct cvy_scan *scan, struct node_line *line) {
    while (!cvy_scan_accept(scan, "=")) {
        const char *name;
        struct cvy_desc desc;
        if (line->out_names.n > 0)
            CVY_TRY(cvy_scan_expect(scan, ","));
        CVY_TRY(cvy_scan_name(scan, &name));
        CVY_TRY(parse_desc(scan, &desc));
        CVY_TRY(cvy_vec_push(&line->out_names, name));
        CVY_TRY(cvy_vec_push(&line->out_descs, desc));
    }
    return CVY_OK;
}

/* "OP(IN, -, IN) NAME=VALUE" */
static cvy_status parse_call(const struct cvy_graph *g, struct cvy_scan *scan, struct node_line *line) {
    const char *op;
    CVY_TRY(cvy_scan_name(scan, &op));
    line->spec.op = cvy_op_find(op);
    if (!line->spec.op)
        return CVY_FAIL(CVY_ERR_DATA, "there is no operator \"%.60s\"", op);
    CVY_TRY(cvy_scan_expect(scan, "("));
    while (!cvy_scan_accept(scan, ")")) {
        cvy_value v = CVY_NONE;
        if (line->in.n > 0)
            CVY_TRY(cvy_scan_expect(scan, ","));
        if (!cvy_scan_accept(scan, "-"))
            CVY_TRY(parse_value(g, scan, &v));
        CVY_TRY(cvy_vec_push(&line->in, v));
    }
    CVY_TRY(cvy_alloc_items(1, line->spec.op->attrs_size, &line->attrs));
    cvy_attrs_default(line->spec.op, line->attrs);
    while (*cvy_scan_peek(scan) && strcmp(cvy_scan_peek(scan), ";") != 0)
        CVY_TRY(cvy_attrs_parse(line->spec.op, cvy_scan_word(scan), line->attrs));
    return CVY_OK;
}

/* One of the notes behind ";". */
static cvy_status parse_note(struct cvy_scan *scan, struct node_line *line) {
    int phase;
    if (cvy_scan_accept(scan, "layer"))
        return cvy_scan_name(scan, &line->spec.name);
    if (cvy_scan_accept(scan, "stage"))
        return cvy_scan_i32(scan, 0, &line->spec.stage);
    if (cvy_scan_accept(scan, "bucket"))
        return cvy_scan_i32(scan, 0, &line->bucket);
    if (cvy_scan_accept(scan, "algorithm"))
        return cvy_scan_i32(scan, INT32_MIN, &line->algorithm);
    if (cvy_scan_accept(scan, "id")) {
        int64_t id;
        CVY_TRY(cvy_scan_int(scan, 1, UINT32_MAX, &id));
        line->spec.id = (uint32_t)id;
        return CVY_OK;
    }
    CVY_TRY(cvy_scan_choice(scan, cvy_phase_names, CVY_PHASE_REFRESH + 1, &phase));
    line->spec.phase = (enum cvy_phase)phase;
    return CVY_OK;
}

static cvy_status parse_notes(struct cvy_scan *scan, struct node_line *line) {
    CVY_TRY(cvy_scan_expect(scan, ";"));
    do
        CVY_TRY(parse_note(scan, line));
    while (cvy_scan_accept(scan, ","));
    if (line->spec.id == 0)
        return CVY_FAIL(CVY_ERR_DATA, "a node's line says its id: ; id 3");
    return cvy_scan_end(scan);
}

static cvy_status fail_desc(const struct cvy_value_info *made, const struct cvy_desc *written) {
    struct cvy_text text = {0};
    cvy_desc_print(&text, &made->desc);
    cvy_text_printf(&text, ", not ");
    cvy_desc_print(&text, written);
    cvy_status status =
        CVY_FAIL(CVY_ERR_DATA, "%s is %s", made->name, text.data ? text.data : "something else");
    cvy_text_free(&text);
    return status;
}

/* The node that was made must be the one that the text describes. */
static cvy_status compare_outputs(const struct cvy_graph *g, const struct cvy_node *node,
                                  const struct node_line *line) {
    if ((size_t)node->n_out != line->out_names.n)
        return CVY_FAIL(CVY_ERR_DATA, "%s makes %d outputs, not %zu", node->op->name, node->n_out,
                        line->out_names.n);
    for (int o = 0; o < node->n_out; o++) {
        const struct cvy_value_info *made = cvy_graph_value(g, node->out[o]);
        if (strcmp(made->name, line->out_names.data[o]) != 0)
            return CVY_FAIL(CVY_ERR_DATA, "output %d of this node is called \"%.60s\", not \"%.60s\"", o,
                            made->name, line->out_names.data[o]);
        if (!cvy_desc_equal(&made->desc, &line->out_descs.data[o]))
            return fail_desc(made, &line->out_descs.data[o]);
    }
    return CVY_OK;
}

static cvy_status parse_node(struct cvy_graph *g, struct cvy_scan *scan) {
    struct node_line line = {.spec = {.stage = -1}, .bucket = -1};
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(parse_outputs(scan, &line));
    CVY_TRY_OUT(parse_call(g, scan, &line));
    CVY_TRY_OUT(parse_notes(scan, &line));
    if (!line.spec.name)
        CVY_TRY_OUT(cvy_layer_imply(line.spec.op, line.out_names.n > 0 ? line.out_names.data[0] : NULL,
                                    &g->pool, &line.spec.name));
    line.spec.attrs = line.attrs;
    line.spec.in = line.in.data;
    line.spec.n_in = (int)line.in.n;
    CVY_TRY_OUT(cvy_graph_add_node(g, &line.spec, NULL));
    struct cvy_node *node = &g->nodes.data[g->nodes.n - 1];
    node->bucket = line.bucket;
    node->algorithm = line.algorithm;
    CVY_TRY_OUT(compare_outputs(g, node, &line));
out:
    free_line(&line);
    return status;
}

/* "sum KIND VALUE [for TARGET] [bucket B]" */
static cvy_status parse_sum(struct cvy_graph *g, struct cvy_scan *scan) {
    struct cvy_reducible r = {.target = CVY_NONE, .bucket = -1};
    int kind;
    CVY_TRY(cvy_scan_choice(scan, cvy_reduce_names, CVY_REDUCE_HITS + 1, &kind));
    r.kind = (enum cvy_reduce_kind)kind;
    CVY_TRY(parse_value(g, scan, &r.value));
    if (cvy_scan_accept(scan, "for"))
        CVY_TRY(parse_value(g, scan, &r.target));
    if (cvy_scan_accept(scan, "bucket"))
        CVY_TRY(cvy_scan_i32(scan, 0, &r.bucket));
    return cvy_vec_push(&g->reducibles, r);
}

/* "output NAME = VALUE" */
static cvy_status parse_output(struct cvy_graph *g, struct cvy_scan *scan) {
    const char *name;
    cvy_value v;
    CVY_TRY(cvy_scan_name(scan, &name));
    CVY_TRY(cvy_scan_expect(scan, "="));
    CVY_TRY(parse_value(g, scan, &v));
    return cvy_graph_set_output(g, name, v);
}

/* "graph batch N next ID [buckets B]" */
static cvy_status parse_header(struct cvy_graph *g, struct cvy_scan *scan, uint32_t *next_id) {
    int64_t next;
    CVY_TRY(cvy_scan_expect(scan, "graph"));
    CVY_TRY(cvy_scan_expect(scan, "batch"));
    CVY_TRY(cvy_scan_int(scan, 1, INT64_MAX, &g->batch));
    CVY_TRY(cvy_scan_expect(scan, "next"));
    CVY_TRY(cvy_scan_int(scan, 1, UINT32_MAX, &next));
    *next_id = (uint32_t)next;
    if (cvy_scan_accept(scan, "buckets"))
        CVY_TRY(cvy_scan_i32(scan, 1, &g->n_buckets));
    return cvy_scan_end(scan);
}

/* A node's line starts with "NAME DESC" or, without outputs, with "=". Any other starts with a keyword and a
   name, so a layer may be called "input" or "sum". */
static bool is_node(const struct cvy_scan *scan) {
    return strcmp(cvy_scan_peek(scan), "=") == 0 || strchr(cvy_scan_peek_second(scan), '[');
}

static cvy_status parse_line(struct cvy_graph *g, struct cvy_scan *scan) {
    if (is_node(scan))
        return parse_node(g, scan);
    for (int kind = CVY_VALUE_INPUT; kind < CVY_VALUE_RESULT; kind++) {
        if (cvy_scan_accept(scan, cvy_value_kind_names[kind])) {
            CVY_TRY(parse_root(g, scan, (enum cvy_value_kind)kind));
            return cvy_scan_end(scan);
        }
    }
    if (cvy_scan_accept(scan, "sum")) {
        CVY_TRY(parse_sum(g, scan));
    } else {
        CVY_TRY(cvy_scan_expect(scan, "output"));
        CVY_TRY(parse_output(g, scan));
    }
    return cvy_scan_end(scan);
}

static cvy_status parse_all(struct cvy_graph *g, struct cvy_scan *scan) {
    uint32_t next_id;
    cvy_status status = CVY_OK;
    cvy_scan_line(scan);
    CVY_TRY_OUT(parse_header(g, scan, &next_id));
    while (cvy_scan_line(scan))
        CVY_TRY_OUT(parse_line(g, scan));
    g->next_id = next_id;
    return cvy_graph_verify(g);
out:
    return cvy_scan_fail(scan, status);
}

cvy_status cvy_graph_parse(const char *text, struct cvy_graph **out) {
    struct cvy_scan scan = {0};
    struct cvy_graph *g = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_scan_open(&scan, text));
    CVY_TRY_OUT(cvy_graph_new(&g));
    CVY_TRY_OUT(parse_all(g, &scan));
    *out = g;
    g = NULL;
out:
    cvy_graph_free(g);
    cvy_scan_close(&scan);
    return status;
}

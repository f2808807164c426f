/* Counts over a model's graph, from the operators' own cost formulas. */
#include "models/summary.h"

#include <stdlib.h>

static void count_values(const struct cvy_graph *g, struct cvy_summary *out) {
    for (size_t i = 0; i < g->values.n; i++) {
        const struct cvy_value_info *value = &g->values.data[i];
        int64_t n = cvy_shape_count(&value->desc.shape), n_bytes = (int64_t)cvy_desc_bytes(&value->desc);
        if (value->kind == CVY_VALUE_PARAM)
            out->n_parameters += n;
        else if (value->kind == CVY_VALUE_BUFFER)
            out->n_buffers += n;
        if (value->kind == CVY_VALUE_PARAM || value->kind == CVY_VALUE_BUFFER)
            out->weight_bytes += n_bytes;
    }
}

static cvy_status count_node(const struct cvy_graph *g, const struct cvy_node *node,
                             struct cvy_summary *out) {
    struct cvy_desc *in;
    CVY_TRY(CVY_ALLOC(in, (size_t)node->n_in));
    struct cvy_infer call;
    cvy_graph_call(g, node, in, &call);
    for (int i = 0; i < node->n_out; i++) {
        if (!(node->op->flags & CVY_OP_VIEW))
            out->activation_bytes += (int64_t)cvy_desc_bytes(&call.out[i]);
    }
    struct cvy_cost cost;
    cvy_op_cost(&call, &cost);
    out->forward_flops += cost.flops / (double)out->input.batch;
    free(in);
    return CVY_OK;
}

static cvy_status summarize(const struct cvy_graph *g, struct cvy_summary *out) {
    count_values(g, out);
    for (size_t i = 0; i < g->nodes.n; i++) {
        if (g->nodes.data[i].phase == CVY_PHASE_FORWARD)
            CVY_TRY(count_node(g, &g->nodes.data[i], out));
    }
    return CVY_OK;
}

cvy_status cvy_model_summarize(const struct cvy_model *model, const struct cvy_summary_input *input,
                               struct cvy_summary *out) {
    struct cvy_summary summary = {.input = *input};
    struct cvy_summary_input *in = &summary.input;
    if (in->channels == 0 && in->height == 0 && in->width == 0) {
        in->channels = model->channels;
        in->height = model->height;
        in->width = model->width;
    }
    if (in->num_classes == 0)
        in->num_classes = model->num_classes;
    if (in->batch == 0)
        in->batch = 1;

    cvy_graph *g = NULL, *batched = NULL;
    cvy_status status;
    CVY_TRY_OUT(cvy_graph_new(&g));
    cvy_model(g, model->name, cvy_input(g, "images", in->channels, in->height, in->width), in->num_classes);
    CVY_TRY_OUT(cvy_graph_status(g));
    CVY_TRY_OUT(cvy_graph_rebatch(g, in->batch, &batched));
    CVY_TRY_OUT(summarize(batched, &summary));
    *out = summary;
out:
    cvy_graph_free(batched);
    cvy_graph_free(g);
    return status;
}

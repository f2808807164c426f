/* stage: which stage of the model each node belongs to. Said in the graph (cvy_stage), or balanced: the nodes, in
   their order, are cut into runs so that the slowest stage is as fast as it can be, within the memory of a device. */
#include "pass/pass.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* The share of a node's arithmetic that the backend's algorithm for it leaves. */
static double work_of(const struct cvy_graph *g, const struct cvy_node *node,
                      const struct cvy_stage_options *options) {
    const struct cvy_kernel_impl *const *kernel = cvy_backend_kernels(options->backend);
    struct cvy_operand_spec in[32], out[CVY_MAX_OUT];
    struct cvy_call call;
    for (; *kernel; kernel++) {
        if (strcmp((*kernel)->op, node->op->name) != 0 || !(*kernel)->work)
            continue;
        cvy_call_of_node(g, node, NULL, in, out, &call);
        call.rule_batch = g->batch;
        return (*kernel)->work(options->conv_algo, &call);
    }
    return 1;
}

/* A processor that computes 200 Gflop/s and moves 10 GB/s, as an AVX-512 core does; only the ratio matters. */
static const double FLOPS = 200e9, BYTES = 10e9;

static double node_time(const struct cvy_graph *g, const struct cvy_node *node,
                        const struct cvy_stage_options *options) {
    struct cvy_desc in[32];
    struct cvy_cost cost = {0, 0};
    struct cvy_infer call;
    cvy_graph_call(g, node, in, &call);
    cvy_op_cost(&call, &cost);
    return cost.flops * work_of(g, node, options) / FLOPS + cost.bytes / BYTES;
}

static double param_bytes(const struct cvy_graph *g, const struct cvy_node *node) {
    double n_bytes = 0;
    for (int k = 0; k < node->n_in; k++) {
        const struct cvy_value_info *in = node->in[k] == CVY_NONE ? NULL : &g->values.data[node->in[k]];
        n_bytes += in && in->kind == CVY_VALUE_PARAM ? (double)cvy_desc_bytes(&in->desc) : 0;
    }
    return n_bytes;
}

double cvy_layer_time(const struct cvy_graph *g, const struct cvy_node *node,
                      const struct cvy_stage_options *options) {
    double time = node_time(g, node, options);
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct cvy_node *other = &g->nodes.data[i];
        if (other->id == node->id && other->phase == CVY_PHASE_BACKWARD)
            time += node_time(g, other, options);
    }
    if (cvy_graph_output(g, "loss") != CVY_NONE)
        time +=
            param_bytes(g, node) / BYTES; /* adding up and updating: measured as if the gradient moved once */
    return time;
}

/* A layer as balancing sees it. */
struct load {
    double time;
    double param_bytes, out_bytes;
};

static struct load load_of(const struct cvy_graph *g, const struct cvy_node *node,
                           const struct cvy_stage_options *options) {
    struct load load = {.time = cvy_layer_time(g, node, options), .param_bytes = param_bytes(g, node)};
    for (int k = 0; k < node->n_out; k++)
        load.out_bytes += (double)cvy_desc_bytes(&g->values.data[node->out[k]].desc);
    return load;
}

/* What the bytes of stage k cost: nothing up to the limit; beyond it far more than any time does.
   A slot holds every output until the backward pass has used it, and there two gradients at a time; parameters may
   have one more copy, in another layout. A sixth of the limit is left to the kernels' workspaces, not known yet. */
static double overload(const struct cvy_stage_options *options, size_t k, const struct load *sum,
                       double most_out) {
    if (!options->memory_limit)
        return 0;
    double bytes = sum->param_bytes * (options->n_copies + 1 + options->n_sums[k]) +
                   (sum->out_bytes + 2 * most_out) * options->n_slots[k];
    double over = bytes / ((double)options->memory_limit * 5 / 6) - 1;
    return over > 0 ? 1e9 * over : 0;
}

/* best[k][i]: the worst cost of a stage when nodes 0 .. i-1 form k + 1 stages; cut[k][i]: where the last one begins.
   Every stage has a node. */
static void find_cuts(const struct load *load, size_t n, size_t n_stages,
                      const struct cvy_stage_options *options, double *best, size_t *cut) {
    size_t width = n + 1;
    for (size_t k = 0; k < n_stages; k++) {
        for (size_t i = k + 1; i <= n; i++) {
            struct load last = {0, 0, 0};
            double most_out = 0, *b = &best[k * width + i];
            *b = DBL_MAX;
            for (size_t j = i; j-- > k;) {
                last.time += load[j].time;
                last.param_bytes += load[j].param_bytes;
                last.out_bytes += load[j].out_bytes;
                most_out = load[j].out_bytes > most_out ? load[j].out_bytes : most_out;
                if (k == 0 && j > 0)
                    continue;
                double worst = last.time + overload(options, k, &last, most_out);
                double before = k == 0 ? 0 : best[(k - 1) * width + j];
                worst = worst > before ? worst : before;
                if (worst <= *b) {
                    *b = worst;
                    cut[k * width + i] = j;
                }
            }
        }
    }
}

static cvy_status cut_evenly(const struct load *load, size_t n, size_t n_stages,
                             const struct cvy_stage_options *options, int32_t *stage) {
    double *best = NULL;
    size_t *cut = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(CVY_ALLOC(best, (n + 1) * n_stages));
    CVY_TRY_OUT(CVY_ALLOC(cut, (n + 1) * n_stages));
    find_cuts(load, n, n_stages, options, best, cut);
    for (size_t end = n, k = n_stages; k-- > 0;) {
        size_t begin = cut[k * (n + 1) + end];
        for (size_t i = begin; i < end; i++)
            stage[i] = (int32_t)k;
        end = begin;
    }
out:
    free(best);
    free(cut);
    return status;
}

/* A copy with the backward pass, where there will be one. */
static cvy_status copy_with_backward(const struct cvy_graph *g, struct cvy_graph **out) {
    CVY_TRY(cvy_graph_rebatch(g, g->batch, out));
    return cvy_graph_output(g, "loss") == CVY_NONE ? CVY_OK : cvy_pass_autodiff(*out);
}

static cvy_status balance(struct cvy_graph *g, int32_t n_stages, const struct cvy_stage_options *options) {
    struct cvy_graph *whole = NULL;
    struct load *load = NULL;
    int32_t *stage = NULL;
    size_t *node = NULL, n = 0;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(copy_with_backward(g, &whole));
    CVY_TRY_OUT(CVY_ALLOC(load, g->nodes.n));
    CVY_TRY_OUT(CVY_ALLOC(stage, g->nodes.n));
    CVY_TRY_OUT(CVY_ALLOC(node, g->nodes.n));
    for (size_t i = 0; i < g->nodes.n; i++) { /* the copy begins with the same nodes */
        if (g->nodes.data[i].phase == CVY_PHASE_FORWARD) {
            load[n] = load_of(whole, &whole->nodes.data[i], options);
            node[n++] = i;
        }
    }
    if ((size_t)n_stages > n) {
        status = CVY_FAIL(CVY_ERR_USAGE,
                          "%d stages for a model of %zu operators: take at most %zu devices a replica",
                          n_stages, n, n);
        goto out;
    }
    CVY_TRY_OUT(cut_evenly(load, n, (size_t)n_stages, options, stage));
    for (size_t i = 0; i < n; i++)
        g->nodes.data[node[i]].stage = stage[i];
out:
    cvy_graph_free(whole);
    free(load);
    free(stage);
    free(node);
    return status;
}

/* What the graph says; a node that says nothing goes with the one before it. */
static cvy_status take_said(struct cvy_graph *g, int32_t n_stages, int32_t highest) {
    int32_t now = 0;
    if (highest + 1 != n_stages)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "the model is built in %d stages, the mesh has %d: take %d devices a replica",
                        highest + 1, n_stages, highest + 1);
    for (size_t i = 0; i < g->nodes.n; i++) {
        struct cvy_node *node = &g->nodes.data[i];
        now = node->stage >= 0 ? node->stage : now;
        node->stage = now;
    }
    return CVY_OK;
}

/* Statistics are kept where they are made. */
static void follow_statistics(struct cvy_graph *g) {
    for (size_t i = 0; i < g->nodes.n; i++) {
        struct cvy_node *node = &g->nodes.data[i];
        for (int k = 0; node->phase == CVY_PHASE_UPDATE && k < node->n_in; k++) {
            int32_t maker = node->in[k] == CVY_NONE ? -1 : g->values.data[node->in[k]].node;
            if (maker >= 0)
                node->stage = g->nodes.data[maker].stage;
        }
    }
}

static cvy_status check_order(const struct cvy_graph *g) {
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct cvy_node *node = &g->nodes.data[i];
        for (int k = 0; node->phase == CVY_PHASE_FORWARD && k < node->n_in; k++) {
            int32_t maker = node->in[k] == CVY_NONE ? -1 : g->values.data[node->in[k]].node;
            if (maker >= 0 && g->nodes.data[maker].stage > node->stage)
                return CVY_FAIL(CVY_ERR_USAGE,
                                "layer %s of stage %d reads what layer %s of stage %d makes: stages "
                                "must follow the order of the layers",
                                node->name, node->stage, g->nodes.data[maker].name,
                                g->nodes.data[maker].stage);
        }
    }
    return CVY_OK;
}

cvy_status cvy_pass_stages(struct cvy_graph *g, int32_t n_stages, const struct cvy_stage_options *options) {
    int32_t highest = -1;
    for (size_t i = 0; i < g->nodes.n; i++)
        highest = g->nodes.data[i].stage > highest ? g->nodes.data[i].stage : highest;
    if (n_stages == 1) {
        for (size_t i = 0; i < g->nodes.n; i++)
            g->nodes.data[i].stage = 0;
        return CVY_OK;
    }
    CVY_TRY(highest >= 0 ? take_said(g, n_stages, highest) : balance(g, n_stages, options));
    follow_statistics(g);
    return check_order(g);
}

void cvy_pass_stages_like(struct cvy_graph *g, const struct cvy_graph *like) {
    int32_t now = 0;
    for (size_t i = 0; i < g->nodes.n; i++) {
        for (size_t k = 0; k < like->nodes.n; k++) {
            if (like->nodes.data[k].id == g->nodes.data[i].id &&
                like->nodes.data[k].phase == CVY_PHASE_FORWARD)
                now = like->nodes.data[k].stage;
        }
        g->nodes.data[i].stage = now;
    }
    follow_statistics(g);
}

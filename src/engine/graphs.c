/* A plan's graphs: for training and for evaluation, made from the user's; and the training graph of another image size,
   which has the same parameters, reducibles and buckets, so that one store and one optimiser serve both. */
#include "engine/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Stages are found by cost, or are those of `like`. */
struct training {
    const struct cvy_graph *built, *like;
    struct cvy_graph *fused, *train;
};

static cvy_status make_training(struct cvy_plan *plan, struct training *t) {
    static const char *const wanted[] = {"loss", "hits"};
    struct cvy_graph *mode = NULL, *copy = NULL, *synced = NULL, *lean = NULL;
    struct cvy_update_options update = {.first_bucket_bytes =
                                            (size_t)(plan->options.first_bucket_mb * 1048576),
                                        .bucket_bytes = (size_t)(plan->options.bucket_mb * 1048576)};
    CVY_TRY(cvy_plan_optimizer(plan, &update));
    cvy_status status;
    CVY_TRY_OUT(cvy_pass_mode(t->built, true, wanted, 2, &mode));
    CVY_TRY_OUT(cvy_pass_fuse(mode, &t->fused));
    if (plan->options.sync_bn) {
        CVY_TRY_OUT(cvy_pass_sync_bn(t->fused, plan->options.shards, &synced));
        cvy_graph_free(t->fused);
        t->fused = synced;
    }
    if (plan->options.freeze)
        CVY_TRY_OUT(cvy_pass_freeze(t->fused, plan->options.freeze));
    CVY_TRY_OUT(cvy_graph_rebatch(t->fused, plan->rule_batch, &copy));
    if (t->like)
        cvy_pass_stages_like(copy, t->like);
    else
        CVY_TRY_OUT(cvy_plan_cut_stages(plan, update.optimizer, copy));
    CVY_TRY_OUT(cvy_plan_add_casts(plan, &copy, true));
    CVY_TRY_OUT(cvy_pass_autodiff(copy));
    if (plan->options.recompute) {
        CVY_TRY_OUT(cvy_pass_recompute(copy, &lean));
        cvy_graph_free(copy);
        copy = lean;
    }
    CVY_TRY_OUT(cvy_pass_update(copy, &update));
    CVY_TRY_OUT(cvy_graph_verify(copy));
    t->train = copy;
    copy = NULL;
out:
    cvy_graph_free(mode);
    cvy_graph_free(copy);
    return status;
}

static cvy_status make_evaluation(struct cvy_plan *plan) {
    static const char *const wanted[] = {"losses", "ranks", "logits"};
    const struct cvy_stage_options balance = cvy_plan_stage_options(plan);
    struct cvy_graph *mode = NULL;
    cvy_status status;
    CVY_TRY_OUT(cvy_pass_mode(plan->built, false, wanted, 3, &mode));
    CVY_TRY_OUT(cvy_pass_fuse(mode, &plan->evaluation));
    if (plan->train)
        cvy_pass_stages_like(plan->evaluation, plan->train);
    else
        CVY_TRY_OUT(cvy_pass_stages(plan->evaluation, plan->mesh.pipe, &balance));
    CVY_TRY_OUT(cvy_plan_add_casts(plan, &plan->evaluation, false));
    CVY_TRY_OUT(cvy_graph_verify(plan->evaluation));
out:
    cvy_graph_free(mode);
    return status;
}

cvy_status cvy_plan_make_graphs(struct cvy_plan *plan) {
    if (plan->options.optimizer) {
        struct training t = {.built = plan->built};
        cvy_status status = make_training(plan, &t);
        plan->fused = t.fused;
        plan->train = t.train;
        CVY_TRY(status);
    }
    return make_evaluation(plan);
}

void cvy_plan_free_graphs(struct cvy_plan *plan) {
    for (int32_t stage = 0; plan->stores && stage < plan->mesh.pipe; stage++)
        cvy_store_free(&plan->stores[stage]);
    free(plan->stores);
    plan->stores = NULL;
    cvy_graph_free(plan->fused);
    cvy_graph_free(plan->train);
    cvy_graph_free(plan->evaluation);
    cvy_graph_free(plan->resized);
    plan->fused = plan->train = plan->evaluation = plan->resized = NULL;
}

/* ---- another image size ---------------------------------------------------------------------------- */

static bool is_stored(const struct cvy_value_info *info) {
    return info->kind != CVY_VALUE_INPUT && info->kind != CVY_VALUE_RESULT;
}

static cvy_status check_stored(const struct cvy_graph *g, const struct cvy_graph *was) {
    for (size_t v = 0; v < g->values.n; v++) {
        const struct cvy_value_info *info = &g->values.data[v];
        cvy_value other = is_stored(info) ? cvy_graph_find(was, info->name) : CVY_NONE;
        if (is_stored(info) &&
            (other == CVY_NONE || !cvy_desc_equal(&info->desc, &cvy_graph_value(was, other)->desc)))
            return CVY_FAIL(CVY_ERR_USAGE,
                            "%s depends on the size of the images: this model takes images of one size only",
                            info->name);
    }
    return CVY_OK;
}

/* Sums lie as the plan's do: the same reducibles in the same order and buckets. */
static cvy_status check_sums(const struct cvy_graph *g, const struct cvy_graph *was) {
    bool is_same = g->reducibles.n == was->reducibles.n && g->n_buckets == was->n_buckets;
    for (size_t i = 0; is_same && i < g->reducibles.n; i++) {
        const struct cvy_reducible *a = &g->reducibles.data[i], *b = &was->reducibles.data[i];
        is_same = a->kind == b->kind && a->bucket == b->bucket &&
                  cvy_desc_equal(&cvy_graph_value(g, a->value)->desc, &cvy_graph_value(was, b->value)->desc);
    }
    return is_same ? CVY_OK : CVY_FAIL(CVY_ERR_USAGE, "the network is another one for images of this size");
}

static const int64_t *image_shape(const struct cvy_graph *g) {
    cvy_value v = cvy_graph_find(g, "images");
    return v == CVY_NONE ? NULL : cvy_graph_value(g, v)->desc.shape.dim + 1;
}

static cvy_status check_images(const struct cvy_graph *g, const struct cvy_graph *was) {
    const int64_t *now = image_shape(g), *most = image_shape(was);
    if (!now || !most || now[0] != most[0] || now[1] > most[1] || now[2] > most[2])
        return CVY_FAIL(CVY_ERR_USAGE,
                        "training takes images of the plan's channels, of its size or smaller");
    return CVY_OK;
}

cvy_status cvy_plan_resize(struct cvy_plan *plan, const cvy_graph *graph) {
    CVY_TRY(cvy_graph_status(graph));
    CVY_TRY(check_images(graph, plan->built));
    struct training t = {.built = graph, .like = plan->train};
    cvy_status status;
    CVY_TRY_OUT(make_training(plan, &t));
    CVY_TRY_OUT(check_stored(t.train, plan->train));
    CVY_TRY_OUT(check_sums(t.train, plan->train));
    cvy_graph_free(plan->resized);
    plan->resized = t.train;
    t.train = NULL;
out:
    cvy_graph_free(t.fused);
    cvy_graph_free(t.train);
    return status;
}

const struct cvy_graph *cvy_plan_training(const struct cvy_plan *plan) {
    return plan->resized ? plan->resized : plan->train;
}

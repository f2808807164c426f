/* See clip.h. */
#include "engine/step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- preparing --------------------------------------------------------------------------------------- */

/* The parameters' order is that of their making: stages and buckets have no part in it. */
static int32_t index_of(const struct cvy_graph *g, cvy_value target, int32_t *n) {
    int32_t index = 0;
    *n = 0;
    for (size_t i = 0; i < g->reducibles.n; i++) {
        bool is_gradient = g->reducibles.data[i].kind == CVY_REDUCE_GRADIENT;
        *n += is_gradient;
        index += is_gradient && g->reducibles.data[i].target < target;
    }
    return index;
}

static cvy_status make_kernel(struct cvy_worker *w, const char *op, const struct cvy_stored *param,
                              struct cvy_kernel **out) {
    const struct cvy_operand_spec gradient = {.desc = param->desc, .layout = param->layout, .is_fixed = true};
    const struct cvy_operand_spec number = {.desc = {CVY_F32, CVY_SHAPE(1)}, .is_fixed = true};
    struct cvy_operand_spec in[] = {gradient, number};
    bool is_norm = strcmp(op, "vector_norm") == 0;
    struct cvy_operand_spec result = is_norm ? number : gradient;
    struct cvy_call call = {
        .op = cvy_op_find(op), .n_in = is_norm ? 1 : 2, .n_out = 1, .in = in, .out = &result};
    size_t scratch = 0;
    CVY_TRY(cvy_kernel_select(w->device, &call, NULL)->prepare(w->device, &call, out, &scratch));
    w->store.scratch_bytes = scratch > w->store.scratch_bytes ? scratch : w->store.scratch_bytes;
    return CVY_OK;
}

static cvy_status add_gradient(struct cvy_worker *w, size_t reducible) {
    const struct cvy_graph *g = w->chosen;
    cvy_value target = g->reducibles.data[reducible].target;
    const struct cvy_stored *param = cvy_store_find(&w->store, cvy_graph_value(g, target)->name);
    if (!param)
        return CVY_OK; /* another stage's */
    struct cvy_gradient gradient = {
        .place = {CVY_SPACE_SUM, w->reducible_offset[reducible], param->place.n_bytes},
        .index = index_of(g, target, &w->clip.n)};
    CVY_TRY(cvy_vec_push(&w->clip.gradients, gradient));
    struct cvy_gradient *kept = &w->clip.gradients.data[w->clip.gradients.n - 1];
    CVY_TRY(make_kernel(w, "vector_norm", param, &kept->norm));
    return make_kernel(w, "unscale", param, &kept->divide);
}

/* Each norm has an aligned place of its own in staging, which is free during a step; behind them is the divisor. */
static size_t staging_bytes(const struct cvy_clip *clip) { return (clip->gradients.n + 1) * CVY_ALIGN; }

cvy_status cvy_clip_prepare(struct cvy_worker *w) {
    if (!w->chosen || w->plan->options.clip_grad_norm <= 0)
        return CVY_OK;
    for (size_t i = 0; i < w->chosen->reducibles.n; i++) {
        if (w->chosen->reducibles.data[i].kind == CVY_REDUCE_GRADIENT)
            CVY_TRY(add_gradient(w, i));
    }
    (void)index_of(w->chosen, 0, &w->clip.n);
    size_t n_bytes = staging_bytes(&w->clip);
    w->store.staging_bytes = n_bytes > w->store.staging_bytes ? n_bytes : w->store.staging_bytes;
    CVY_TRY(CVY_ALLOC(w->clip.norms, (size_t)w->clip.n));
    CVY_TRY(CVY_ALLOC(w->clip.theirs, (size_t)w->clip.n));
    return CVY_ALLOC(w->clip.host, n_bytes);
}

static void release(struct cvy_kernel *kernel) {
    if (kernel)
        kernel->impl->release(kernel);
}

void cvy_clip_free(struct cvy_clip *clip) {
    for (size_t i = 0; i < clip->gradients.n; i++) {
        release(clip->gradients.data[i].norm);
        release(clip->gradients.data[i].divide);
    }
    cvy_vec_free(&clip->gradients);
    free(clip->norms);
    free(clip->theirs);
    free(clip->host);
    *clip = (struct cvy_clip){.n = 0};
}

/* ---- in a step --------------------------------------------------------------------------------------- */

static char *staged(const struct cvy_step *s, size_t i) {
    return s->w->memory[CVY_SPACE_NONE] + i * CVY_ALIGN;
}

static cvy_status run(const struct cvy_step *s, struct cvy_kernel *kernel, void *const *in, void *out) {
    return kernel->impl->run(kernel, in, &out, s->w->memory[CVY_SPACE_SCRATCH]);
}

/* The norms of this stage's gradients; 0 for those of others. */
static cvy_status measure(const struct cvy_step *s) {
    struct cvy_clip *clip = &s->w->clip;
    memset(clip->norms, 0, (size_t)clip->n * sizeof *clip->norms);
    for (size_t i = 0; i < clip->gradients.n; i++) {
        void *in[] = {cvy_place_address(s->w, clip->gradients.data[i].place, 0, 0)};
        CVY_TRY(run(s, clip->gradients.data[i].norm, in, staged(s, i)));
    }
    if (clip->gradients.n)
        CVY_TRY(s->backend->download(s->w->device, clip->host, staged(s, 0), clip->gradients.n * CVY_ALIGN));
    for (size_t i = 0; i < clip->gradients.n; i++) {
        float norm;
        memcpy(&norm, clip->host + i * CVY_ALIGN, sizeof norm);
        clip->norms[clip->gradients.data[i].index] = (double)norm;
    }
    return CVY_OK;
}

/* All stages tell all. Replicas have the same. */
static cvy_status share(const struct cvy_step *s) {
    struct cvy_clip *clip = &s->w->clip;
    const struct cvy_program *p = s->w->program;
    size_t n_bytes = (size_t)clip->n * sizeof *clip->norms;
    for (int32_t stage = 0; p->n_stages > 1 && stage < p->n_stages; stage++) {
        memset(clip->theirs, 0, n_bytes);
        for (size_t i = 0; i < clip->gradients.n; i++) {
            int32_t k = clip->gradients.data[i].index;
            clip->theirs[k] = clip->norms[k];
        }
        CVY_TRY(cvy_talk_bytes(s, stage, clip->theirs, n_bytes, "norms of gradients"));
        for (int32_t k = 0; stage != p->stage && k < clip->n; k++)
            clip->norms[k] += clip->theirs[k];
    }
    return CVY_OK;
}

static cvy_status divide(const struct cvy_step *s, float divisor) {
    const struct cvy_clip *clip = &s->w->clip;
    void *by = staged(s, clip->gradients.n);
    CVY_TRY(s->backend->upload(s->w->device, by, &divisor, sizeof divisor));
    for (size_t i = 0; i < clip->gradients.n; i++) {
        void *at = cvy_place_address(s->w, clip->gradients.data[i].place, 0, 0);
        CVY_TRY(run(s, clip->gradients.data[i].divide, (void *[]){at, by}, at));
    }
    return CVY_OK;
}

cvy_status cvy_step_clip(const struct cvy_step *s) {
    struct cvy_clip *clip = &s->w->clip;
    double sum = 0;
    clip->norm = NAN;
    if (s->w->is_skipping)
        return CVY_OK; /* all devices know that the gradients are not finite */
    CVY_TRY(measure(s));
    CVY_TRY(share(s));
    for (int32_t k = 0; k < clip->n; k++)
        sum += clip->norms[k] * clip->norms[k];
    clip->norm = sqrt(sum);
    if (!isfinite(clip->norm))
        return CVY_FAIL(CVY_ERR_NAN,
                        "step %lld: the norm of the gradients is %s, though the loss is finite; lower the "
                        "learning rate (--lr)",
                        (long long)s->work->step, isnan(clip->norm) ? "nan" : "infinite");
    double divisor = (clip->norm + 1e-6) / s->w->plan->options.clip_grad_norm;
    return divisor > 1 ? divide(s, (float)divisor) : CVY_OK;
}

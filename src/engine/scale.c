/* See scale.h. */
#include "engine/scale.h"
#include "engine/step.h"

static const double FIRST = 65536, SMALLEST = 0x1p-24, LARGEST = 0x1p100;

struct cvy_loss_scale cvy_loss_scale_begin(void) {
    return (struct cvy_loss_scale){.scale = FIRST};
}

cvy_status cvy_loss_scale_settle(struct cvy_loss_scale *s, bool is_skipped) {
    s->is_skipped = is_skipped;
    s->n_skipped += is_skipped;
    s->n_good = is_skipped ? 0 : s->n_good + 1;
    if (is_skipped) {
        s->scale /= 2;
    } else if (s->n_good == CVY_GROWTH_INTERVAL) {
        s->n_good = 0;
        s->scale = s->scale < LARGEST ? 2 * s->scale : s->scale;
    }
    if (s->scale >= SMALLEST)
        return CVY_OK;
    return CVY_FAIL(
        CVY_ERR_NAN,
        "gradients are not finite, however small the scale of the loss; lower the learning rate (--lr), or "
        "take --amp bf16");
}

static cvy_status look_at(const struct cvy_step *s, const float *at, size_t n, bool *is_bad) {
    float *flag = (float *)(void *)s->w->memory[CVY_SPACE_NONE], found; /* staging is free during a step */
    CVY_TRY(s->backend->zero(s->w->device, flag, sizeof *flag));
    CVY_TRY(s->backend->not_finite(s->w->device, at, n, flag));
    CVY_TRY(s->backend->download(s->w->device, &found, flag, sizeof found));
    *is_bad = found != 0;
    return CVY_OK;
}

/* This device's own, all of them reduced. */
static cvy_status look(const struct cvy_step *s, float *found) {
    const struct cvy_program *p = s->w->program;
    float *flag = (float *)(void *)s->w->memory[CVY_SPACE_NONE];
    CVY_TRY(s->backend->zero(s->w->device, flag, sizeof *flag));
    for (size_t b = 0; b < p->buckets.n; b++) {
        if (p->buckets.data[b].n_floats > 0)
            CVY_TRY(s->backend->not_finite(s->w->device, cvy_step_bucket(s->w, (int32_t)b, 0),
                                           p->buckets.data[b].n_floats, flag));
    }
    return s->backend->download(s->w->device, found, flag, sizeof *found);
}

/* The first parameter of this stage with such a gradient, counted from 1 among all of the network; 0: none. */
static cvy_status find_gradient(const struct cvy_step *s, float *out) {
    const struct cvy_worker *w = s->w;
    for (size_t i = 0; i < w->chosen->reducibles.n; i++) {
        const struct cvy_reducible *r = &w->chosen->reducibles.data[i];
        const struct cvy_place place = {CVY_SPACE_SUM, w->reducible_offset[i], 0};
        const struct cvy_stored *param =
            r->kind == CVY_REDUCE_GRADIENT
                ? cvy_store_find(&w->store, cvy_graph_value(w->chosen, r->target)->name)
                : NULL;
        bool is_bad;
        if (!param)
            continue;
        CVY_TRY(look_at(s, cvy_place_address(w, place, 0, 0), param->place.n_bytes / sizeof(float), &is_bad));
        if (is_bad) {
            *out = (float)(i + 1);
            return CVY_OK;
        }
    }
    return CVY_OK;
}

/* All stages tell all, so that all fail with the same words. */
static cvy_status fail(const struct cvy_step *s) {
    const struct cvy_graph *g = s->w->chosen;
    float mine = 0, first = 0;
    const char *name = "something";
    CVY_TRY(find_gradient(s, &mine));
    first = mine;
    for (int32_t stage = 0; s->w->program->n_stages > 1 && stage < s->w->program->n_stages; stage++) {
        float theirs = mine;
        CVY_TRY(cvy_talk_number(s, stage, &theirs, "which gradient is not finite"));
        first = theirs > 0 && (first == 0 || theirs < first) ? theirs : first;
    }
    if (first > 0)
        name = cvy_graph_value(g, g->reducibles.data[(size_t)first - 1].target)->name;
    return CVY_FAIL(
        CVY_ERR_NAN,
        "step %lld: the gradient of %s is not finite, though the loss is; lower the learning rate (--lr), "
        "or leave such updates out (--on-nan skip)",
        (long long)s->work->step, name);
}

/* Stages have gradients of their own: all tell all. Replicas have the same. */
cvy_status cvy_step_finite(const struct cvy_step *s) {
    const struct cvy_plan *plan = s->w->plan;
    float mine = 0;
    CVY_TRY(look(s, &mine));
    bool is_bad = mine != 0 || (plan->skips && s->w->is_loss_bad);
    for (int32_t stage = 0; s->w->program->n_stages > 1 && stage < s->w->program->n_stages; stage++) {
        float theirs = mine;
        CVY_TRY(cvy_talk_number(s, stage, &theirs, "whether gradients are finite"));
        is_bad |= theirs != 0;
    }
    s->w->is_skipping = is_bad && (plan->skips || s->work->scale > 0);
    return is_bad && !s->w->is_skipping ? fail(s) : CVY_OK;
}

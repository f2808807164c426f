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

/* This device's own, all of them reduced. */
static cvy_status look(const struct cvy_step *s, float *found) {
    const struct cvy_program *p = s->w->program;
    float *flag = (float *)(void *)s->w->memory[CVY_SPACE_NONE]; /* staging is free during a step */
    CVY_TRY(s->backend->zero(s->w->device, flag, sizeof *flag));
    for (size_t b = 0; b < p->buckets.n; b++) {
        if (p->buckets.data[b].n_floats > 0)
            CVY_TRY(s->backend->not_finite(s->w->device, cvy_step_bucket(s->w, (int32_t)b, 0),
                                           p->buckets.data[b].n_floats, flag));
    }
    return s->backend->download(s->w->device, found, flag, sizeof *found);
}

/* Stages have gradients of their own: all tell all. Replicas have the same. */
cvy_status cvy_step_finite(const struct cvy_step *s) {
    float mine = 0;
    CVY_TRY(look(s, &mine));
    s->w->is_skipping = mine != 0;
    for (int32_t stage = 0; s->w->program->n_stages > 1 && stage < s->w->program->n_stages; stage++) {
        float theirs = mine;
        CVY_TRY(cvy_talk_number(s, stage, &theirs, "whether gradients are finite"));
        s->w->is_skipping |= theirs != 0;
    }
    return CVY_OK;
}

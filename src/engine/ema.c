/* See ema.h. */
#include "engine/ema.h"

#include "engine/tensors.h"

#include <stdlib.h>
#include <string.h>

static size_t room(const struct cvy_stored *s) { return cvy_align_up(cvy_desc_bytes(&s->desc), CVY_ALIGN); }

double cvy_ema_decay(const struct cvy_ema_options *options, int64_t n_images, int64_t n_epochs) {
    double share = (1 - options->decay) * (double)n_images * (double)options->steps / (double)n_epochs;
    return 1 - (share < 1 ? share : 1);
}

cvy_status cvy_ema_open(struct cvy_ema *ema, cvy_session *session, int64_t steps, double decay) {
    size_t n_bytes = 0;
    for (size_t i = 0; i < session->stored.n; i++)
        n_bytes += cvy_stored_is_weight(session->stored.data[i]) ? room(session->stored.data[i]) : 0;
    *ema = (struct cvy_ema){.session = session, .steps = steps, .decay = decay};
    CVY_TRY(CVY_ALLOC(ema->average, n_bytes));
    CVY_TRY(CVY_ALLOC(ema->one, session->staging_bytes));
    return cvy_ema_copy(ema);
}

void cvy_ema_free(struct cvy_ema *ema) {
    free(ema->average);
    free(ema->one);
    *ema = (struct cvy_ema){.session = NULL};
}

/* What is done with each stored weight: `one` has room for it. */
typedef cvy_status action(struct cvy_ema *ema, const struct cvy_stored *s, char *average);

static cvy_status for_each(struct cvy_ema *ema, action *act) {
    char *at = ema->average;
    for (size_t i = 0; i < ema->session->stored.n; i++) {
        const struct cvy_stored *s = ema->session->stored.data[i];
        if (!cvy_stored_is_weight(s))
            continue;
        CVY_TRY(act(ema, s, at));
        at += room(s);
    }
    return CVY_OK;
}

static cvy_status copy(struct cvy_ema *ema, const struct cvy_stored *s, char *average) {
    return cvy_session_read(ema->session, s->name, average);
}

cvy_status cvy_ema_copy(struct cvy_ema *ema) { return for_each(ema, copy); }

/* Whole numbers, such as batch-norm's count of batches, are cut off, as PyTorch does where it stores a float in one. */
static cvy_status average(struct cvy_ema *ema, const struct cvy_stored *s, char *average) {
    int64_t n = cvy_shape_count(&s->desc.shape);
    double keep = ema->decay, join = 1 - ema->decay;
    CVY_TRY(cvy_session_read(ema->session, s->name, ema->one));
    if (s->desc.dtype == CVY_F32) {
        float *to = (float *)(void *)average;
        const float *from = (const float *)(const void *)ema->one;
        for (int64_t i = 0; i < n; i++)
            to[i] = (float)(keep * (double)to[i] + join * (double)from[i]);
    } else if (s->desc.dtype == CVY_I64) {
        int64_t *to = (int64_t *)(void *)average;
        const int64_t *from = (const int64_t *)(const void *)ema->one;
        for (int64_t i = 0; i < n; i++)
            to[i] = (int64_t)(keep * (double)to[i] + join * (double)from[i]);
    } else {
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "--model-ema: %s is neither float32 nor int64", s->name);
    }
    return CVY_OK;
}

cvy_status cvy_ema_step(struct cvy_ema *ema, int64_t step, bool is_warmup) {
    if (!ema->session || step % ema->steps != 0)
        return CVY_OK;
    CVY_TRY(for_each(ema, ema->n_averaged == 0 ? copy : average));
    ema->n_averaged = is_warmup ? 0 : ema->n_averaged + 1;
    return CVY_OK;
}

static cvy_status swap(struct cvy_ema *ema, const struct cvy_stored *s, char *average) {
    CVY_TRY(cvy_session_read(ema->session, s->name, ema->one));
    CVY_TRY(cvy_session_write(ema->session, s->name, average));
    memcpy(average, ema->one, cvy_desc_bytes(&s->desc));
    return CVY_OK;
}

cvy_status cvy_ema_swap(struct cvy_ema *ema) {
    CVY_TRY(for_each(ema, swap));
    return cvy_session_spread(ema->session);
}

/* under_way: updates that are made of several batches. Which batch belongs to which update, and how many images are
   still to come, is the session's to know; the gradients so far lie in each device's space "total". */
#include "engine/session.h"

#include <inttypes.h>

static bool is_open(const struct cvy_under_way *u) { return u->n_done > 0 && u->n_done < u->n; }

static cvy_status check_new(const cvy_plan_options *o, const cvy_batch *batch) {
    if (batch->n_update < batch->n)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "the batch has %" PRId64 " images, its update %" PRId64
                        " (n_update): give those of all its batches, or 0",
                        batch->n, batch->n_update);
    if (batch->n_update > batch->n && o->accumulate == 1)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "the batch has %" PRId64 " of its update's %" PRId64
                        " images (n_update), but this plan makes an update of each batch: set "
                        "cvy_plan_options.accumulate",
                        batch->n, batch->n_update);
    if ((batch->n_update - 1) / o->batch_size >= o->accumulate)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "an update of %" PRId64
                        " images (n_update) does not fit this plan, made for up to %" PRId64
                        " batches of up to %" PRId64,
                        batch->n_update, o->accumulate, o->batch_size);
    return CVY_OK;
}

cvy_status cvy_under_way_join(const struct cvy_session *session, cvy_batch *batch, int64_t *first) {
    const struct cvy_under_way *u = &session->under_way;
    batch->n_update = batch->n_update ? batch->n_update : batch->n;
    CVY_TRY(check_new(&session->plan->options, batch));
    if (is_open(u) && (batch->n_update != u->n || batch->n > u->n - u->n_done))
        return CVY_FAIL(CVY_ERR_USAGE,
                        "a batch of %" PRId64 " images for an update of %" PRId64
                        " does not go on with %" PRId64 " of %" PRId64
                        " that are in: finish these, or call cvy_discard",
                        batch->n, batch->n_update, u->n_done, u->n);
    *first = is_open(u) ? u->n_done : 0;
    return CVY_OK;
}

void cvy_under_way_add(struct cvy_session *session, int64_t n, int64_t n_update, const cvy_metrics *got) {
    struct cvy_under_way *u = &session->under_way;
    if (!is_open(u))
        *u = (struct cvy_under_way){.n = n_update};
    u->n_done += n;
    u->loss += got->loss;
    u->top1 += got->top1;
    u->top5 += got->top5;
    if (u->n_done == n_update) {
        session->metrics = *got;
        session->metrics.n = n_update;
    } else { /* the losses so far were divided by the images of the whole update */
        double whole = (double)n_update / (double)u->n_done;
        session->metrics =
            (cvy_metrics){.loss = u->loss * whole, .n = u->n_done, .top1 = u->top1, .top5 = u->top5};
    }
}

void cvy_discard(cvy_session *session) {
    session->under_way = (struct cvy_under_way){.n = 0};
    session->split = CVY_SPLIT_NONE;
}

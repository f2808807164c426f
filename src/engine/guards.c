/* See guards.h. */
#include "engine/guards.h"
#include "engine/check_sync.h"
#include "engine/session.h"
#include "engine/slowest.h"
#include "engine/world.h"

#define LL(x) ((long long)(x))

enum { MOST_IN_A_ROW = 100 }; /* updates left out, after which nothing is to be hoped for */

static cvy_status count_skips(struct cvy_trainer *t) {
    struct cvy_skips *s = &t->skips;
    if (!t->task.plan->skips || !t->task.session->scale.is_skipped) {
        s->in_row = 0;
        return CVY_OK;
    }
    s->in_epoch++;
    if (++s->in_row < MOST_IN_A_ROW)
        return CVY_OK;
    return CVY_FAIL(
        CVY_ERR_NAN,
        "step %lld: this is the update number %lld in a row that is left out, its loss or gradients not "
        "being finite; lower the learning rate (--lr), or look at the data",
        LL(t->state.n_updates - 1), LL(s->in_row));
}

cvy_status cvy_guards_step(struct cvy_trainer *t) {
    const int64_t every = t->options.check_sync;
    CVY_TRY(count_skips(t));
    return every > 0 && t->state.n_updates % every == 0 ? cvy_session_check_sync(t->task.session) : CVY_OK;
}

void cvy_guards_begin(struct cvy_trainer *t) {
    cvy_session_forget_waits(t->task.session);
    t->loaded_s = 0;
}

static void tell_skips(struct cvy_trainer *t) {
    if (t->skips.in_epoch > 0)
        cvy_log(&t->options.task.plan.log, CVY_LOG_WARNING,
                "epoch %lld: %lld of %lld updates were left out (--on-nan)", LL(t->state.epoch + 1),
                LL(t->skips.in_epoch), LL(t->n_steps));
}

static void tell_slowest(const struct cvy_trainer *t, const struct cvy_slowest *s) {
    if (s->device >= 0)
        cvy_log(&t->options.task.plan.log, CVY_LOG_INFO,
                "epoch %lld: slowest: device %d of rank %d, which waited %.2f s for others and %.2f s for "
                "images; others "
                "waited up to %.2f s",
                LL(t->state.epoch + 1), s->device, s->rank, s->waited_s, s->loaded_s, s->most_s);
}

/* An epoch that has brought nothing, so that the next would not either. With --amp fp16 its updates may have been left
   out while the scale of the loss was looked for. */
static cvy_status check_epoch(const struct cvy_trainer *t) {
    const bool is_scaled = t->task.session->scale.scale > 0;
    const bool is_lost = t->state.train.n == 0 || (!is_scaled && t->skips.in_epoch >= t->n_steps);
    if (!t->task.plan->skips || !is_lost)
        return CVY_OK;
    return CVY_FAIL(
        CVY_ERR_NAN,
        "epoch %lld: every update was left out, its loss or gradients not being finite; lower the "
        "learning rate (--lr), or look at the data and at the weights that it began with",
        LL(t->state.epoch + 1));
}

cvy_status cvy_guards_epoch(struct cvy_trainer *t) {
    cvy_world *world = t->options.task.plan.world;
    struct cvy_slowest slowest = {.device = -1};
    CVY_TRY(check_epoch(t));
    if (cvy_world_size(world) > 1)
        CVY_TRY(cvy_session_slowest(t->task.session, t->loaded_s, &slowest));
    if (cvy_world_rank(world) == 0) {
        tell_skips(t);
        tell_slowest(t, &slowest);
    }
    t->skips.in_epoch = 0;
    return CVY_OK;
}

/* See saving.h. */
#include "engine/saving.h"

#include "base/text.h"
#include "engine/world.h"

#include <string.h>

#define LL(x) ((long long)(x))

/* Where a checkpoint has ended, rank 0 knows what became of it. */
static cvy_status settle_mine(struct cvy_trainer *t) {
    bool is_new;
    CVY_TRY(cvy_checkpoint_writer_settle(&t->writer, &is_new));
    if (is_new && t->writer.has_best)
        t->folder.has_old_run = false; /* its best/ has just been replaced */
    if (is_new)
        cvy_run_folder_drop_old(&t->folder);
    return CVY_OK;
}

cvy_status cvy_trainer_settle(struct cvy_trainer *trainer) {
    if (!trainer->options.output_dir)
        return CVY_OK;
    return cvy_world_share_failure(trainer->options.task.plan.world, settle_mine(trainer), "the checkpoint");
}

cvy_status cvy_trainer_checkpoint(struct cvy_trainer *trainer, bool is_best) {
    struct cvy_trainer *t = trainer;
    cvy_world *world = t->options.task.plan.world;
    const bool is_writer = cvy_world_rank(world) == 0;
    cvy_status status = CVY_OK;
    if (!t->options.output_dir)
        return CVY_OK;
    CVY_TRY(cvy_trainer_settle(t));
    CVY_TRY(cvy_snapshot_take(&t->writer.snapshot, t->task.session, &t->state, &t->ema));
    if (is_writer && !t->writer.is_open)
        status = cvy_checkpoint_writer_open(&t->writer, t->options.output_dir, &t->card);
    if (is_writer && status == CVY_OK)
        status = cvy_checkpoint_writer_begin(&t->writer, is_best);
    t->is_saved = true;
    return cvy_world_share_failure(world, status, "the checkpoint");
}

/* As a shell reads it: 'it'\''s here'. */
static void add_quoted(struct cvy_text *out, const char *word) {
    cvy_text_append(out, "'", 1);
    for (; *word; word++) {
        if (*word == '\'')
            cvy_text_printf(out, "'\\''");
        else
            cvy_text_append(out, word, 1);
    }
    cvy_text_append(out, "'", 1);
}

static cvy_status interrupt(struct cvy_trainer *t) {
    const char *dir = t->options.output_dir;
    struct cvy_text next = {0};
    if (!t->is_saved)
        CVY_TRY(cvy_trainer_checkpoint(t, false));
    CVY_TRY(cvy_trainer_settle(t));
    if (!dir)
        cvy_text_printf(&next, "nothing was saved, for want of --output-dir");
    else
        cvy_text_printf(&next, "go on with: convoy train --resume ");
    if (dir && dir[strcspn(dir, " \t\n'\"\\$`!*?[](){}<>|&;#~")])
        add_quoted(&next, dir);
    else if (dir)
        cvy_text_append(&next, dir, strlen(dir));
    cvy_status status =
        CVY_FAIL(CVY_INTERRUPTED, "interrupted in epoch %lld after step %lld of %lld; %s",
                 LL(t->state.epoch + 1), LL(t->state.step), LL(t->n_steps), next.data ? next.data : "");
    cvy_text_free(&next);
    return status;
}

/* What a process has to tell the others after a step; the largest counts. */
enum { NOTHING, STOP, FAILED };

cvy_status cvy_trainer_heed_interrupts(struct cvy_trainer *trainer) {
    struct cvy_trainer *t = trainer;
    int64_t news = t->events.is_interrupted && t->events.is_interrupted(t->events.context) ? STOP : NOTHING;
    cvy_status mine =
        t->writer.is_open && !cvy_checkpoint_writer_is_busy(&t->writer) ? settle_mine(t) : CVY_OK;
    struct cvy_error error;
    cvy_error_save(&error, mine);
    news = mine == CVY_OK ? news : FAILED;
    cvy_status status = cvy_world_max(t->options.task.plan.world, &news, "asking who was interrupted");
    if (status != CVY_OK)
        return cvy_fail_prefix(status, "after step %lld: ", LL(t->state.n_updates));
    if (news == FAILED)
        return cvy_world_share_failure(t->options.task.plan.world,
                                       mine == CVY_OK ? CVY_OK : cvy_error_restore(&error), "the checkpoint");
    return news == STOP ? interrupt(t) : CVY_OK;
}

cvy_status cvy_trainer_between_steps(struct cvy_trainer *trainer) {
    const int64_t every = trainer->options.checkpoint_every;
    CVY_TRY(cvy_trainer_heed_interrupts(trainer));
    return every > 0 && trainer->state.n_updates % every == 0 ? cvy_trainer_checkpoint(trainer, false)
                                                              : CVY_OK;
}

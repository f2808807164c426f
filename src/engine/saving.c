/* See saving.h. */
#include "engine/saving.h"

#include "base/text.h"
#include "engine/world.h"

#include <string.h>

#define LL(x) ((long long)(x))

cvy_status cvy_trainer_checkpoint(struct cvy_trainer *trainer, const char *name) {
    struct cvy_trainer *t = trainer;
    const char *dir = t->options.output_dir;
    if (!dir)
        return CVY_OK;
    CVY_TRY(cvy_checkpoint_save(dir, name, t->task.session, &t->card, &t->state, &t->ema));
    if (strcmp(name, "best") == 0)
        t->folder.has_old_run = false; /* its best/ has just been replaced */
    t->is_saved = strcmp(name, "last") == 0;
    cvy_run_folder_drop_old(&t->folder);
    return CVY_OK;
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
        CVY_TRY(cvy_trainer_checkpoint(t, "last"));
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

cvy_status cvy_trainer_heed_interrupts(struct cvy_trainer *trainer) {
    struct cvy_trainer *t = trainer;
    int64_t is_asked = t->events.is_interrupted && t->events.is_interrupted(t->events.context);
    cvy_status status = cvy_world_max(t->options.task.plan.world, &is_asked, "asking who was interrupted");
    if (status != CVY_OK)
        return cvy_fail_prefix(status, "after step %lld: ", LL(t->state.n_updates));
    return is_asked ? interrupt(t) : CVY_OK;
}

cvy_status cvy_trainer_between_steps(struct cvy_trainer *trainer) {
    const int64_t every = trainer->options.checkpoint_every;
    CVY_TRY(cvy_trainer_heed_interrupts(trainer));
    return every > 0 && trainer->state.n_updates % every == 0 ? cvy_trainer_checkpoint(trainer, "last")
                                                              : CVY_OK;
}

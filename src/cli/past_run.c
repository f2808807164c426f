/* See past_run.h. */
#include "cli/past_run.h"

#include "engine/run_folder.h"
#include "engine/schedule.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what has changed ----------------------------------------------------------------------------------- */

/* What steps depend on and a checkpoint does not say itself. */
static const struct flag_group *const step_groups[] = {&group_optimizer, &group_schedule, &group_ema};

static void add_change(struct flag_values *values, const struct flag *flag, const json_t *was,
                       struct cvy_text *out) {
    struct cvy_text before = {0}, now = {0};
    bool has_now = flags_print(values, flag, &now), has_before = was && flags_print_json(was, &before);
    if (has_now != has_before || (has_now && strcmp(now.data, before.data) != 0))
        cvy_text_printf(out, "%s--%s %s (was %s)", out->n ? ", " : "", flag->name,
                        has_now ? now.data : "not given", has_before ? before.data : "not given");
    cvy_text_free(&before);
    cvy_text_free(&now);
}

static void list_changes(struct flag_values *values, const json_t *flags, struct cvy_text *out) {
    const struct options *o = values->options;
    const struct cvy_lr_schedule_kind *schedule = cvy_lr_schedule_find(o->lr_scheduler);
    for (size_t g = 0; g < sizeof step_groups / sizeof step_groups[0]; g++)
        for (size_t i = 0; i < step_groups[g]->n; i++) {
            const struct flag *flag = &step_groups[g]->flags[i];
            add_change(values, flag, json_object_get(flags, flag->name), out);
        }
    add_change(values, flags_find(values, "clip-grad-norm"), json_object_get(flags, "clip-grad-norm"), out);
    if (schedule && schedule->is_stretched)
        add_change(values, flags_find(values, "epochs"), json_object_get(flags, "epochs"), out);
}

/* The flags of FILE count where nothing else gives them; what is another now is listed. */
static cvy_status read_file(struct flag_values *values, const char *file, struct past_run *out) {
    const struct options *o = values->options;
    json_error_t error;
    cvy_status status = o->config ? CVY_OK : flags_read_config(values, file);
    if (status != CVY_OK) {
        struct cvy_error why;
        cvy_error_save(&why, status);
        return CVY_FAIL(status,
                        "%s; that file has the flags of the run: --config FILE takes them from another",
                        why.message);
    }
    json_t *root = flags_load_json(file, &error), *flags = json_object_get(root, "flags");
    if (json_is_object(flags))
        list_changes(values, flags, &out->changes);
    out->is_finished = json_object_get(root, "result") != NULL;
    json_decref(root);
    return out->changes.status;
}

/* ---- where it is ------------------------------------------------------------------------------------------ */

/* --resume auto: the newest checkpoint of --output-dir, else a new run, with its --weights. Flags come from its
   run.json, too, where it came so far as to write one. */
static cvy_status read_own(struct flag_values *values, struct past_run *out) {
    struct options *o = values->options;
    char *file;
    if (!o->output_dir)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--resume auto: give the --output-dir whose newest checkpoint it is to go on from");
    if (o->test_only)
        return CVY_FAIL(CVY_ERR_USAGE, "--resume auto: --test-only judges --weights or --resume DIR");
    CVY_TRY(cvy_pool_printf(&values->pool, &file, "%s/run.json", o->output_dir));
    return access(file, R_OK) == 0 ? read_file(values, file, out) : CVY_OK;
}

/* --resume DIR goes on as DIR's run began: its run.json gives the flags that the command line (or --config) does not
   give, and the run is written to where it was. A checkpoint that lies alone leaves all that to the command line. */
cvy_status past_run_read(struct flag_values *values, struct past_run *out) {
    struct options *o = values->options;
    char *dir = NULL, *file;
    if (!o->resume)
        return CVY_OK;
    if (strcmp(o->resume, CVY_RESUME_AUTO) == 0)
        return read_own(values, out);
    if (flags_given(values, "weights"))
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--weights and --resume: a run that goes on has its weights; give one of them");
    for (int up = 0; up < 2 && !dir; up++) { /* DIR, else DIR is its last/ or best/ */
        CVY_TRY(cvy_pool_printf(&values->pool, &dir, "%s%s", o->resume, up ? "/.." : ""));
        CVY_TRY(cvy_pool_printf(&values->pool, &file, "%s/run.json", dir));
        if (access(file, R_OK) != 0)
            dir = NULL;
    }
    if (!dir && !o->config && !o->model)
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "--resume %s: there is no run.json with the run's flags; give them, --model and --data at least",
            o->resume);
    if (dir)
        CVY_TRY(read_file(values, file, out));
    if (dir && !o->output_dir)
        o->output_dir = dir;
    o->weights = NULL; /* those that the run began with */
    o->replace_head = 0;
    return CVY_OK;
}

void past_run_free(struct past_run *past) { cvy_text_free(&past->changes); }

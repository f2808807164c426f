/* convoy explain: what a training step is made of, as text: the plan in short, or the graph before and after a
   pass, or the programs of the devices. */
#include "cli/command.h"
#include "cli/tuning.h"

#include <stdio.h>
#include <stdlib.h>

static void passes(struct flag_names *out) {
    *out = (struct flag_names){.name = {"build", "fuse", "autodiff", "choose", "program"}, .n = 5};
}

static const struct flag explain_flags[] = {
    {.name = "pass",
     .type = FLAG_TEXT,
     .offset = offsetof(struct options, pass),
     .help = "the graph before and after this pass; program: what each device runs; default: a summary",
     .choices = passes},
};
static const struct flag_group group_explain = {.title = "Explain", .flags = explain_flags, .n = 1};

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    const struct options *o = values->options;
    const struct cvy_model *model = o->model ? cvy_model_find(o->model) : NULL;
    struct cvy_task_options options;
    struct cvy_task task = {.plan = NULL};
    char *text;
    CVY_TRY(command_no_rest(values));
    /* what has no loss can only be run forward */
    enum cvy_task_kind kind = model && !model->is_classifier ? CVY_TASK_PREDICT : CVY_TASK_TRAIN;
    CVY_TRY(options_task(values, kind, log, &options));
    options.is_plan_only = true;
    cvy_status status = cvy_task_open(&task, &options, NULL);
    if (status == CVY_OK)
        status = cvy_plan_explain(task.plan, o->pass, &text);
    if (status == CVY_OK) {
        fputs(text, stdout);
        free(text);
    }
    cvy_task_free(&task);
    return status;
}

static const struct flag_group *const groups[] = {
    &group_explain, &group_shape,   &group_freeze,  &group_data, &group_prepare,
    &group_batch,   &group_devices, &group_kernels, &group_step, &group_optimizer,
    &group_seed,    &group_tuning,  &group_common,  NULL};

const struct command command_explain = {
    .name = "explain",
    .usage = "--model NAME [--pass NAME] [--data SPEC | --input CxHxW --num-classes K] [flags]",
    .help = "print the graph and the programs that a training step is made of",
    .groups = groups,
    .run = run,
};

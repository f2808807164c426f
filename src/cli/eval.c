/* convoy eval: how good are these weights on this data set? Each image counts exactly once. */
#include "cli/command.h"
#include "cli/printer.h"
#include "cli/tuning.h"
#include "engine/evaluation.h"

#include "base/thread.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static cvy_status print_result(const struct cvy_tally *t, double seconds, bool as_json) {
    double rate = seconds > 0 ? (double)t->n / seconds : 0;
    if (as_json)
        return command_print_json(json_pack("{s:I, s:f, s:f, s:I, s:f, s:I, s:f}", "images", (json_int_t)t->n,
                                            "loss", cvy_tally_loss(t), "top1", cvy_tally_top1(t),
                                            "top1_count", (json_int_t)t->top1, "top5", cvy_tally_top5(t),
                                            "top5_count", (json_int_t)t->top5, "images_per_s", rate));
    printf("top-1 %.2f %% (%lld of %lld image%s), top-5 %.2f %%, loss %.4f, %.0f images/s\n",
           cvy_tally_top1(t), (long long)t->top1, (long long)t->n, t->n == 1 ? "" : "s", cvy_tally_top5(t),
           cvy_tally_loss(t), rate);
    return CVY_OK;
}

static cvy_status judge(struct cvy_task *task, const struct cvy_task_options *options, const char *weights,
                        bool as_json) {
    struct cvy_tally tally;
    CVY_TRY(cvy_task_open(task, options, NULL));
    CVY_TRY(cvy_task_start(task));
    CVY_TRY(cvy_task_load_weights(task, weights));
    if (!as_json)
        printer_devices(task->plan);
    int64_t start_ns = cvy_now_ns();
    CVY_TRY(cvy_evaluate_all(task->session, task->val_loader, task->options.loader.batch_size, NULL, &tally));
    if (!isfinite(cvy_tally_loss(&tally)))
        return CVY_FAIL(CVY_ERR_NAN, "the loss of %s on '%s' is not finite: the weights or an image are not",
                        weights, task->options.data);
    return print_result(&tally, (double)(cvy_now_ns() - start_ns) * 1e-9, as_json);
}

cvy_status eval_run(struct flag_values *values, const cvy_log_sink *log) {
    const struct options *o = values->options;
    const char *path = o->weights ? o->weights : o->resume;
    struct cvy_task_options options;
    struct cvy_task task = {.plan = NULL};
    struct cvy_card card = {.model = NULL};
    char *file;
    cvy_status status = command_no_rest(values);
    if (status == CVY_OK)
        status = options_task(values, CVY_TASK_EVAL, log, &options);
    if (status == CVY_OK && !path)
        status = CVY_FAIL(CVY_ERR_USAGE,
                          "no weights: give --weights PATH, a file or a folder that --output-dir wrote");
    CVY_TRY(command_agree(values, status));
    CVY_TRY(cvy_weights_find(path, &file));
    status = cvy_card_read(file, &card);
    if (status == CVY_OK) {
        cvy_card_complete(&card, &options);
        status = judge(&task, &options, file, o->json == 1);
    }
    cvy_task_free(&task);
    cvy_card_free(&card);
    free(file);
    return status;
}

static const struct flag_group *const groups[] = {
    &group_shape,   &group_weights, &group_data,   &group_prepare, &group_batch, &group_devices,
    &group_kernels, &group_json,    &group_tuning, &group_common,  NULL};

const struct command command_eval = {
    .name = "eval",
    .usage = "--weights PATH --data SPEC [flags]",
    .help = "judge weights on the validation split of a data set",
    .groups = groups,
    .is_collective = true,
    .run = eval_run,
};

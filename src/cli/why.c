/* convoy why: what keeps a training run from being faster, from the profile that --profile wrote. */
#include "cli/command.h"

#include "engine/faults.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- text ----------------------------------------------------------------------------------------------- */

static void print_step(const struct cvy_profile_file *f) {
    printf("%s on %s, %s on %s, batch %lld, S=%lld T=%lld: means of %lld steps\n", f->model, f->data,
           f->strategy, f->device_list, (long long)f->batch_size, (long long)f->shards, (long long)f->threads,
           (long long)f->steps);
    printf("a step: %.2f ms, of which %.2f wait for images, %.2f devices at work, %.2f the host\n\n",
           f->step_us / 1e3, f->wait_us / 1e3, f->span_us / 1e3,
           (f->step_us - f->wait_us - f->span_us) / 1e3);
}

static void print_verdict(const struct cvy_verdict *v, size_t number) {
    printf("%zu. %s: %s\n   remedy: %s\n   gain: %s%.2fx", number, v->name, v->cause, v->advice,
           v->is_at_best ? "at best " : "", v->gain);
    if (number > 1)
        printf(", once those above are mended (alone %.2fx)", v->alone);
    printf("\n");
}

static void print_text(const struct cvy_profile_file *f, const struct cvy_verdicts *v) {
    print_step(f);
    for (size_t k = 0; k < v->list.n; k++)
        print_verdict(&v->list.data[k], k + 1);
    if (v->list.n > 1)
        printf("all of them: %.2fx, %.2f ms for as many images\n", f->step_us / v->mended_us,
               v->mended_us / 1e3);
    if (!v->is_timed)
        printf("%swhat these devices do is not timed here: only loading was looked at. See trace.json\n",
               v->list.n ? "" : "not input-bound; ");
    else if (v->list.n == 0)
        printf("compute-bound: passes are %.0f %% of a step, and %.0f %% of operators' time is convolution. "
               "Nothing "
               "else costs a tenth\n",
               100 * v->compute_share, 100 * v->conv_share);
}

/* ---- JSON ----------------------------------------------------------------------------------------------- */

static json_t *verdict_to_json(const struct cvy_verdict *v) {
    return json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:b}", "verdict", v->name, "cause", v->cause, "remedy",
                     v->advice, "flags", v->flags, "gain", v->gain, "gain_alone", v->alone, "at_best",
                     (int)v->is_at_best);
}

static json_t *to_json(const struct cvy_profile_file *f, const struct cvy_verdicts *v) {
    json_t *list = json_array();
    for (size_t k = 0; list && k < v->list.n; k++)
        json_array_append_new(list, verdict_to_json(&v->list.data[k]));
    if (list && v->list.n == 0 && v->is_timed)
        json_array_append_new(list, json_pack("{s:s}", "verdict", "compute-bound"));
    return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:o}", "steps", (json_int_t)f->steps,
                     "step_us", f->step_us, "wait_us", f->wait_us, "span_us", f->span_us, "mended_us",
                     v->mended_us, "compute_share", v->compute_share, "conv_share", v->conv_share, "timed",
                     (int)v->is_timed, "verdicts", list);
}

/* ---- the command ---------------------------------------------------------------------------------------- */

static cvy_status read_profile(const char *dir, struct cvy_pool *pool, struct cvy_profile_file *out) {
    json_error_t error;
    char *path;
    CVY_TRY(cvy_pool_printf(pool, &path, "%s/profile.json", dir));
    json_t *root = flags_load_json(path, &error);
    if (!root)
        return CVY_FAIL(json_error_code(&error) == json_error_cannot_open_file ? CVY_ERR_USAGE : CVY_ERR_DATA,
                        "%s: %s; `convoy train --profile --output-dir %s` writes it", path, error.text, dir);
    CVY_TRY(cvy_profile_file_read(root, path, out));
    if (out->steps < 1)
        return CVY_FAIL(CVY_ERR_DATA, "%s: no step was measured, the run was too short: train for more steps",
                        path);
    return CVY_OK;
}

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    (void)log;
    const struct options *o = values->options;
    struct cvy_profile_file file = {0};
    struct cvy_verdicts verdicts = {0};
    cvy_status status;
    if (values->rest.n != 1)
        return CVY_FAIL(CVY_ERR_USAGE, "convoy why OUTPUT_DIR: give the one folder of a run with --profile");
    CVY_TRY_OUT(read_profile(values->rest.data[0], &values->pool, &file));
    CVY_TRY_OUT(cvy_find_faults(&file, &verdicts));
    if (o->json)
        status = command_print_json(to_json(&file, &verdicts));
    else
        print_text(&file, &verdicts);
out:
    cvy_vec_free(&verdicts.list);
    cvy_profile_file_free(&file);
    return status;
}

static const struct flag_group *const groups[] = {&group_json, &group_common, NULL};

const struct command command_why = {
    .name = "why",
    .usage = "OUTPUT_DIR [--json]",
    .help = "say what makes a run with --profile slow, and what mends it",
    .groups = groups,
    .run = run,
};

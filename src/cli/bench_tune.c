/* convoy bench tune: finds the settings that are quickest for a network on this machine, and writes them down. First
   how the cores are divided among devices, then the algorithm of each convolution; a choice is kept only when it wins
   in alternation against what there was before. */
#include "cli/bench_tune.h"
#include "cli/bench.h"
#include "cli/tuning.h"
#include "engine/json_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_SPLITS = 32 };
static const double LEAST_GAIN = 1.01; /* less is not worth other bits */

static const struct flag tune_flags[] = {
    {.name = "tuning",
     .type = FLAG_TEXT,
     .offset = offsetof(struct options, tuning_out),
     .help = "the file to write, for --tuning of train, eval and bench",
     .value_name = "FILE",
     .is_not_kept = true},
    {.name = "any-shards",
     .type = FLAG_SWITCH,
     .offset = offsetof(struct options, any_shards),
     .help =
         "S may change too: batch-norm normalises over other images, so results differ by more than rounding",
     .initial = "false"},
};
static const struct flag_group group_tune = {.title = "Tuning", .flags = tune_flags, .n = 2};

/* ---- splits -------------------------------------------------------------------------------------------- */

/* Ways to divide the cores; [0] is what the flags say without a tuning. */
struct splits {
    struct bench_setting items[MAX_SPLITS];
    int n;
};

static cvy_status add_split(struct flag_values *values, int64_t n_devices, int64_t threads, int64_t shards,
                            struct splits *out) {
    char *flags, last[16] = "";
    if (out->n == MAX_SPLITS)
        return CVY_OK;
    struct bench_setting *s = &out->items[out->n++];
    if (n_devices > 1)
        snprintf(last, sizeof last, "-%d", (int)n_devices - 1);
    CVY_TRY(cvy_pool_printf(&values->pool, &flags,
                            "--devices=cpu:0%s --threads-per-device=%lld --shards=%lld", last,
                            (long long)threads, (long long)shards));
    *s = (struct bench_setting){.label = flags, .flags = flags};
    CVY_TRY(bench_add_given(values, &s->words));
    return bench_add_text(&values->pool, flags, &s->words);
}

/* Each device gets the same number of cores and of shards. */
static cvy_status list_splits(struct flag_values *values, int n_cores, struct splits *out) {
    static const char *const fixing[] = {"devices", "threads-per-device", "strategy", "mesh", "backend"};
    const struct options *o = values->options;
    int64_t usual = o->shards ? o->shards : 1;
    out->items[0] = (struct bench_setting){.label = "as it is", .flags = ""};
    out->n = 1;
    CVY_TRY(bench_add_given(values, &out->items[0].words));
    for (size_t i = 0; i < sizeof fixing / sizeof *fixing; i++)
        if (flags_given(values, fixing[i]))
            return CVY_OK;
    for (int64_t d = 1; d <= n_cores; d++) {
        if (n_cores % d)
            continue;
        for (int64_t k = 1; o->any_shards == 1 && k <= 4; k *= 2)
            if (d * k <= o->batch_size && (d > 1 || d * k != usual))
                CVY_TRY(add_split(values, d, n_cores / d, d * k, out));
        if (o->any_shards != 1 && d > 1 && usual % d == 0)
            CVY_TRY(add_split(values, d, n_cores / d, usual, out));
    }
    return CVY_OK;
}

static cvy_status choose_split(struct splits *splits, int64_t rounds, struct tuned *out) {
    struct bench_setting *s = splits->items;
    CVY_TRY(tune_rounds(s, splits->n, rounds, out->splits));
    int best = 0;
    for (int i = 1; i < splits->n; i++) {
        struct bench_ratio ratio;
        CVY_TRY(bench_compare(&s[0], &s[i], &ratio));
        if (ratio.summary.median >= LEAST_GAIN && ratio.summary.median > out->split_gain.summary.median) {
            out->split_gain = ratio;
            best = i;
        }
    }
    out->split = &s[best];
    if (best)
        printf("devices: %s, %.3f times as fast (%.3f to %.3f)\n", s[best].flags,
               out->split_gain.summary.median, out->split_gain.summary.lowest,
               out->split_gain.summary.highest);
    else if (splits->n > 1)
        printf("devices: none of %d other ways to divide the cores is worth it\n", splits->n - 1);
    else
        printf("devices: as the flags say; --any-shards would try others\n");
    return CVY_OK;
}

/* ---- the file ------------------------------------------------------------------------------------------ */

/* json_t as a flag's text. */
static json_t *as_text(const json_t *value) {
    char text[32];
    if (json_is_string(value))
        return json_string(json_string_value(value));
    snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
    return json_string(text);
}

static json_t *describe(const struct flag_values *values, const struct tuned *t, const char *machine) {
    const struct options *o = values->options;
    const json_t *is = t->split->newest;
    char date[32], batch[32];
    time_t now = time(NULL);
    struct tm parts;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    snprintf(batch, sizeof batch, "%lld", (long long)o->batch_size);
    json_t *flags = json_pack("{s:o, s:o, s:o}", "devices", as_text(json_object_get(is, "devices")),
                              "threads-per-device", as_text(json_object_get(is, "threads_per_device")),
                              "shards", as_text(json_object_get(is, "shards")));
    if (flags && t->conv_algo)
        json_object_set_new(flags, "conv-algo", json_string(t->conv_algo));
    json_t *gains = json_object();
    if (t->split_gain.n)
        json_object_set_new(gains, "devices", bench_ratio_json(&t->split_gain));
    if (t->conv_algo)
        json_object_set_new(gains, "conv-algo", bench_ratio_json(&t->conv_gain));
    return json_pack("{s:s, s:s, s:s, s:{s:s, s:s, s:s}, s:o, s:o, s:O, s:O}", "convoy", cvy_version(),
                     "machine", machine, "date", date, "for", "model", o->model, "batch-size", batch, "amp",
                     o->amp ? o->amp : "none", "flags", flags, "gains", gains, "measured_splits", t->splits,
                     "measured_convolutions", t->convolutions);
}

static cvy_status write_file(const struct flag_values *values, const struct tuned *t, const char *machine) {
    const struct options *o = values->options;
    CVY_TRY(
        cvy_write_json(o->tuning_out, describe(values, t, machine), JSON_INDENT(2) | JSON_REAL_PRECISION(6)));
    printf("written: %s; now: convoy train … --tuning %s\n", o->tuning_out, o->tuning_out);
    return CVY_OK;
}

/* ---- the command --------------------------------------------------------------------------------------- */

/* Whether it can be written is known now, not after an hour of measuring. */
static cvy_status check_place(const char *path) {
    struct cvy_writer writer = {.path = NULL};
    CVY_TRY(cvy_writer_begin(&writer, path));
    cvy_writer_abandon(&writer);
    return CVY_OK;
}

static cvy_status check(const struct flag_values *values) {
    const struct options *o = values->options;
    CVY_TRY(command_no_rest(values));
    if (!o->tuning_out)
        return CVY_FAIL(CVY_ERR_USAGE, "nowhere to write to: give --tuning FILE");
    if (!o->model)
        return CVY_FAIL(CVY_ERR_USAGE, "no model is named: give --model NAME; `convoy models` lists them");
    return check_place(o->tuning_out);
}

static cvy_status tune(struct flag_values *values, struct splits *splits, struct tuned *t,
                       const char *machine) {
    const struct options *o = values->options;
    CVY_TRY(choose_split(splits, o->rounds, t));
    const char *backend = json_string_value(json_object_get(t->split->newest, "backend"));
    if (!backend || strcmp(backend, "cpu") != 0)
        return CVY_FAIL(CVY_ERR_USAGE, "only backend cpu has settings to tune, not %s",
                        backend ? backend : "this");
    if (!flags_given(values, "conv-algo"))
        CVY_TRY(tune_convolutions(values, t));
    return write_file(values, t, machine);
}

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    (void)log;
    const struct options *o = values->options;
    struct splits splits = {.n = 0};
    struct tuned tuned = {.splits = json_array(), .convolutions = json_object()};
    struct cvy_text machine = {0};
    int n_cores = 1;
    cvy_status status = check(values);
    if (status == CVY_OK)
        status = tuning_machine(&machine, &n_cores);
    if (status == CVY_OK)
        status = list_splits(values, n_cores, &splits);
    if (status == CVY_OK) {
        printf("%s\n%d way%s to divide the cores, %lld rounds of %lld steps each\n", machine.data, splits.n,
               splits.n == 1 ? "" : "s", (long long)o->rounds, (long long)o->steps);
        status = tune(values, &splits, &tuned, machine.data);
    }
    for (int i = 0; i < splits.n; i++)
        bench_setting_free(&splits.items[i]);
    json_decref(tuned.splits);
    json_decref(tuned.convolutions);
    cvy_text_free(&machine);
    return status;
}

static const struct flag_group *const groups[] = {&group_tune,  &group_rounds, &group_bench,
                                                  BENCH_GROUPS, &group_common, NULL};

const struct command command_bench_tune = {
    .name = "bench tune",
    .usage = "--model NAME --tuning FILE [--any-shards] [--rounds N] [flags of bench step]",
    .help = "find the quickest settings for a network on this machine: a file for --tuning",
    .groups = groups,
    .run = run,
};

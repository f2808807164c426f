/* convoy bench compare: two settings in alternation, so that a noisy machine gives a trustworthy answer. */
#include "cli/bench.h"
#include "cli/tuning.h"

#include <stdio.h>

static const struct flag compare_flags[] = {
    {.name = "a",
     .type = FLAG_TEXT,
     .offset = offsetof(struct options, bench_a),
     .help = "flags of A alone, as one text; default: none",
     .value_name = "\"FLAGS\"",
     .is_not_kept = true},
    {.name = "b",
     .type = FLAG_TEXT,
     .offset = offsetof(struct options, bench_b),
     .help = "flags of B alone; all other flags hold for both",
     .value_name = "\"FLAGS\"",
     .is_not_kept = true},
};
static const struct flag_group group_compare = {.title = "Comparison", .flags = compare_flags, .n = 2};

static void print_setting(const char *letter, const struct bench_setting *s) {
    struct bench_summary rate = bench_summarize(s->rates.data, s->rates.n);
    json_int_t shards, threads;
    const char *devices;
    if (json_unpack(s->newest, "{s:s, s:I, s:I}", "devices", &devices, "shards", &shards,
                    "threads_per_device", &threads) != 0)
        return;
    printf("%s: median %.1f images/s (%.1f to %.1f), peak memory %.0f MB, %s, S=%lld T=%lld\n", letter,
           rate.median, rate.lowest, rate.highest, (double)s->peak / 1e6, devices, (long long)shards,
           (long long)threads);
}

static void print_round(const struct bench_setting *s, int64_t round) {
    double a = s[0].rates.data[round], b = s[1].rates.data[round];
    printf("round %lld: A %.1f, B %.1f images/s, B over A %.3f\n", (long long)round + 1, a, b, b / a);
    fflush(stdout);
}

static cvy_status report(const struct bench_setting *s, bool as_json) {
    struct bench_ratio r;
    CVY_TRY(bench_compare(&s[0], &s[1], &r));
    if (as_json)
        return command_print_json(json_pack("{s:o, s:o, s:o}", "a", bench_setting_json(&s[0]), "b",
                                            bench_setting_json(&s[1]), "b_over_a", bench_ratio_json(&r)));
    print_setting("A", &s[0]);
    print_setting("B", &s[1]);
    printf("B over A: %.3f (%.3f to %.3f), faster in %zu of %zu rounds\n", r.summary.median, r.summary.lowest,
           r.summary.highest, r.n_faster, r.n);
    return CVY_OK;
}

static cvy_status make(struct flag_values *values, const char *flags, struct bench_setting *out) {
    out->flags = flags ? flags : "";
    CVY_TRY(bench_add_given(values, &out->words));
    cvy_status status = flags ? bench_add_text(&values->pool, flags, &out->words) : CVY_OK;
    return status == CVY_OK ? status : cvy_fail_prefix(status, "%s: ", out->label);
}

static cvy_status compare(struct flag_values *values, struct bench_setting s[2]) {
    const struct options *o = values->options;
    CVY_TRY(make(values, o->bench_a, &s[0]));
    CVY_TRY(make(values, o->bench_b, &s[1]));
    for (int64_t round = 0; round < o->rounds; round++) {
        CVY_TRY(bench_round(s, 2, round));
        if (o->json != 1)
            print_round(s, round);
    }
    return report(s, o->json == 1);
}

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    (void)log;
    const struct options *o = values->options;
    struct bench_setting settings[2] = {{.label = "A"}, {.label = "B"}};
    CVY_TRY(command_no_rest(values));
    if (!o->bench_b)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "nothing to compare with: give --b \"FLAGS\", such as --b \"--devices cpu:0-1\"");
    cvy_status status = compare(values, settings);
    bench_setting_free(&settings[0]);
    bench_setting_free(&settings[1]);
    return status;
}

static const struct flag_group *const groups[] = {&group_compare, &group_rounds, &group_bench,  BENCH_GROUPS,
                                                  &group_json,    &group_tuning, &group_common, NULL};

const struct command command_bench_compare = {
    .name = "bench compare",
    .usage = "--model NAME [--a \"FLAGS\"] --b \"FLAGS\" [--rounds N] [flags of bench step]",
    .help = "measure two settings in alternation: their ratio, with its spread",
    .groups = groups,
    .run = run,
};

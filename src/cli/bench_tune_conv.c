/* See bench_tune.h: the algorithm of each convolution. Steps with all of them direct and with all of them Winograd tell
   how long each takes inside a step, with the layouts and the memory traffic around it. Where the two differ clearly,
   the quicker one becomes an exception of --conv-algo; together they must then win against the rule, step by step. */
#include "cli/bench_tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double CLEARLY = 1.03, LEAST_GAIN = 1.01;

cvy_status tune_rounds(struct bench_setting *s, int n, int64_t rounds, json_t *list) {
    for (int64_t round = 0; round < rounds; round++) {
        CVY_TRY(bench_round(s, n, round));
        printf("round %lld of %lld, images/s:", (long long)round + 1, (long long)rounds);
        for (int i = 0; i < n; i++)
            printf(" %.1f", s[i].rates.data[round]);
        printf("\n");
        fflush(stdout);
    }
    for (int i = 0; i < n && list; i++)
        json_array_append_new(list, bench_setting_json(&s[i]));
    return CVY_OK;
}

/* The split's words and one more. */
static cvy_status make(struct flag_values *values, const struct tuned *t, const char *algo,
                       struct bench_setting *out) {
    char *word;
    *out = (struct bench_setting){.label = algo, .flags = algo};
    for (size_t i = 0; i < t->split->words.items.n; i++)
        CVY_TRY(cvy_vec_push(&out->words.items, t->split->words.items.data[i]));
    CVY_TRY(cvy_pool_printf(&values->pool, &word, "--conv-algo=%s", algo));
    return cvy_vec_push(&out->words.items, word);
}

/* Times of each convolution, of all rounds so far: {"forward:...": {"direct": [us, ...], "winograd": [...]}}. */
static void note(json_t *times, const char *algo, const json_t *newest) {
    const char *key;
    json_t *us;
    json_object_foreach(json_object_get(newest, "convolutions"), key, us) {
        json_t *entry = json_object_get(times, key);
        if (!entry) {
            entry = json_pack("{s:[], s:[]}", "direct", "winograd");
            json_object_set_new(times, key, entry);
        }
        json_array_append(json_object_get(entry, algo), us);
    }
}

static double median(const json_t *entry, const char *algo) {
    const json_t *list = json_object_get(entry, algo);
    double values[1000];
    size_t n = json_array_size(list);
    n = n < 1000 ? n : 1000;
    for (size_t i = 0; i < n; i++)
        values[i] = json_number_value(json_array_get(list, i));
    return n ? bench_summarize(values, n).median : NAN;
}

/* Returns the number of exceptions. */
static int print_exceptions(const json_t *times, struct cvy_text *out) {
    const char *key;
    json_t *entry;
    int n = 0;
    cvy_text_printf(out, "auto");
    json_object_foreach((json_t *)times, key, entry) {
        double direct = median(entry, "direct"), winograd = median(entry, "winograd");
        bool is_clear = direct > winograd * CLEARLY || winograd > direct * CLEARLY;
        if (is_clear)
            cvy_text_printf(out, "+%s=%s", key, direct < winograd ? "direct" : "winograd");
        n += is_clear;
    }
    return n;
}

static cvy_status measure(struct flag_values *values, struct tuned *t) {
    const struct options *o = values->options;
    struct bench_setting s[2] = {{.peak = 0}, {.peak = 0}};
    cvy_status status = make(values, t, "direct", &s[0]);
    if (status == CVY_OK)
        status = make(values, t, "winograd", &s[1]);
    printf("convolutions: all direct, all Winograd\n");
    for (int64_t round = 0; round < o->rounds && status == CVY_OK; round++) {
        status = bench_round(s, 2, round);
        for (int i = 0; i < 2 && status == CVY_OK; i++)
            note(t->convolutions, s[i].flags, s[i].newest);
    }
    bench_setting_free(&s[0]);
    bench_setting_free(&s[1]);
    return status;
}

static cvy_status verify(struct flag_values *values, struct tuned *t, const char *algo, int n) {
    const struct options *o = values->options;
    struct bench_setting s[2] = {{.peak = 0}, {.peak = 0}};
    cvy_status status = make(values, t, "auto", &s[0]);
    if (status == CVY_OK)
        status = make(values, t, algo, &s[1]);
    printf("convolutions: the rule, the rule with %d exceptions\n", n);
    if (status == CVY_OK)
        status = tune_rounds(s, 2, o->rounds, NULL);
    if (status == CVY_OK)
        status = bench_compare(&s[0], &s[1], &t->conv_gain);
    if (status == CVY_OK) {
        const struct bench_summary *gain = &t->conv_gain.summary;
        bool is_worth = gain->median >= LEAST_GAIN;
        t->conv_algo = is_worth ? algo : NULL;
        printf("convolutions: %d exceptions, %.3f times as fast (%.3f to %.3f)%s\n", n, gain->median,
               gain->lowest, gain->highest, is_worth ? "" : ": not worth it, the rule stays");
    }
    bench_setting_free(&s[0]);
    bench_setting_free(&s[1]);
    return status;
}

cvy_status tune_convolutions(struct flag_values *values, struct tuned *t) {
    struct cvy_text text = {0};
    char *algo;
    if (json_object_size(json_object_get(t->split->newest, "convolutions")) == 0) {
        printf("convolutions: none has a choice\n");
        return CVY_OK;
    }
    CVY_TRY(measure(values, t));
    int n = print_exceptions(t->convolutions, &text);
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_pool_strdup(&values->pool, text.data, &algo);
    cvy_text_free(&text);
    return status == CVY_OK && n ? verify(values, t, algo, n) : status;
}

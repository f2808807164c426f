/* See bench.h: settings in alternation, and what comes out of it. */
#include "cli/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct flag rounds_flags[] = {
    {.name = "rounds",
     .type = FLAG_INT,
     .offset = offsetof(struct options, rounds),
     .help = "how often each setting has its turn",
     .initial = "5",
     .min = 1,
     .max = 1000},
};
const struct flag_group group_rounds = {.title = "Rounds", .flags = rounds_flags, .n = 1};

void bench_setting_free(struct bench_setting *setting) {
    cvy_vec_free(&setting->words.items);
    cvy_vec_free(&setting->rates);
    json_decref(setting->newest);
    *setting = (struct bench_setting){0};
}

static cvy_status measure(struct bench_setting *s) {
    json_decref(s->newest);
    s->newest = NULL;
    CVY_TRY(bench_child(&s->words, &s->newest));
    int64_t peak = json_integer_value(json_object_get(s->newest, "peak_memory_bytes"));
    s->peak = peak > s->peak ? peak : s->peak;
    return cvy_vec_push(&s->rates, json_number_value(json_object_get(s->newest, "images_per_s")));
}

cvy_status bench_round(struct bench_setting *settings, int n, int64_t round) {
    for (int i = 0; i < n; i++) {
        struct bench_setting *s = &settings[round % 2 ? n - 1 - i : i];
        cvy_status status = measure(s);
        if (status != CVY_OK)
            return cvy_fail_prefix(status, "%s: ", s->label);
    }
    return CVY_OK;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct bench_summary bench_summarize(const double *values, size_t n) {
    struct bench_summary out = {NAN, NAN, NAN};
    double *sorted;
    if (CVY_ALLOC(sorted, n) != CVY_OK)
        return out;
    memcpy(sorted, values, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_size);
    out = (struct bench_summary){(sorted[(n - 1) / 2] + sorted[n / 2]) / 2, sorted[0], sorted[n - 1]};
    free(sorted);
    return out;
}

cvy_status bench_compare(const struct bench_setting *a, const struct bench_setting *b,
                         struct bench_ratio *out) {
    double *ratios;
    *out = (struct bench_ratio){.n = a->rates.n};
    CVY_TRY(CVY_ALLOC(ratios, a->rates.n));
    for (size_t i = 0; i < a->rates.n; i++) {
        ratios[i] = b->rates.data[i] / a->rates.data[i];
        out->n_faster += ratios[i] > 1;
    }
    out->summary = bench_summarize(ratios, a->rates.n);
    free(ratios);
    return CVY_OK;
}

json_t *bench_setting_json(const struct bench_setting *s) {
    struct bench_summary rate = bench_summarize(s->rates.data, s->rates.n);
    json_t *rates = json_array();
    for (size_t i = 0; i < s->rates.n; i++)
        json_array_append_new(rates, json_real(s->rates.data[i]));
    return json_pack("{s:s, s:f, s:o, s:I, s:O?, s:O?, s:O?}", "flags", s->flags, "images_per_s", rate.median,
                     "rounds", rates, "peak_memory_bytes", (json_int_t)s->peak, "devices",
                     json_object_get(s->newest, "devices"), "shards", json_object_get(s->newest, "shards"),
                     "threads_per_device", json_object_get(s->newest, "threads_per_device"));
}

json_t *bench_ratio_json(const struct bench_ratio *r) {
    return json_pack("{s:f, s:f, s:f, s:I, s:I}", "median", r->summary.median, "lowest", r->summary.lowest,
                     "highest", r->summary.highest, "rounds", (json_int_t)r->n, "rounds_faster",
                     (json_int_t)r->n_faster);
}

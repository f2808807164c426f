/* What `convoy bench step`, `compare` and `tune` share. Settings are compared as processes of `bench step --json`, each
   new: none of them finds warm caches, grown memory or a team of threads that another has left. */
#ifndef CVY_CLI_BENCH_H
#define CVY_CLI_BENCH_H

#include "cli/command.h"

#define BENCH_GROUPS                                                                        \
    &group_shape, &group_freeze, &group_batch, &group_devices, &group_kernels, &group_step, \
        &group_optimizer, &group_seed

extern const struct flag_group group_bench, group_rounds;
extern const struct command command_bench_step;

/* ---- bench_child.c ---- */

struct bench_words {
    CVY_VEC(const char *) items; /* the texts belong to a pool */
};

/* Adds what the command line gave of the flags that `bench step` has, but for how it prints. Local. */
cvy_status bench_add_given(struct flag_values *values, struct bench_words *out);
/* Adds the words of a text: blanks divide them, but not between '' or "". CVY_ERR_USAGE: a quote has no end. Local. */
cvy_status bench_add_text(struct cvy_pool *pool, const char *text, struct bench_words *out);
/* Runs `convoy bench step --json WORDS`; the caller frees *out. Its error is this one. Local. */
cvy_status bench_child(const struct bench_words *words, json_t **out);

/* ---- bench_rounds.c ---- */

struct bench_setting {
    const char *label, *flags; /* label: in errors */
    struct bench_words words;
    CVY_VEC(double) rates; /* images/s of each round */
    int64_t peak;          /* bytes, the largest of all rounds */
    json_t *newest;        /* of the newest round */
};
void bench_setting_free(struct bench_setting *setting);

/* Runs each of n settings once; every second round in reverse, so that no setting gains by its place. Local. */
cvy_status bench_round(struct bench_setting *settings, int n, int64_t round);

struct bench_summary {
    double median, lowest, highest;
};
/* Of n >= 1 values. */
struct bench_summary bench_summarize(const double *values, size_t n);

struct bench_ratio {
    struct bench_summary summary;
    size_t n, n_faster; /* rounds; those with a ratio above 1 */
};
/* b over a, round by round: what slows the machine for a while slows both. Local. */
cvy_status bench_compare(const struct bench_setting *a, const struct bench_setting *b,
                         struct bench_ratio *out);
/* New; NULL without memory. */
json_t *bench_setting_json(const struct bench_setting *setting);
json_t *bench_ratio_json(const struct bench_ratio *ratio);

#endif

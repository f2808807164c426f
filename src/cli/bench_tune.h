/* What `convoy bench tune` has found out. */
#ifndef CVY_CLI_BENCH_TUNE_H
#define CVY_CLI_BENCH_TUNE_H

#include "cli/bench.h"

struct tuned {
    const struct bench_setting *split; /* the best one, measured */
    struct bench_ratio split_gain;     /* n = 0: it is the first */
    const char *conv_algo;             /* NULL: as it was */
    struct bench_ratio conv_gain;
    json_t *splits, *convolutions; /* all that was measured */
};

/* Measures n settings in turn, `rounds` times, showing each; appends them to `list` (NULL: not). Local. */
cvy_status tune_rounds(struct bench_setting *settings, int n, int64_t rounds, json_t *list);
/* Finds tuned->conv_algo on the best split. Local. */
cvy_status tune_convolutions(struct flag_values *values, struct tuned *tuned);

#endif

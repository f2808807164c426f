/* What `convoy bench step`, `compare` and `tune` share. */
#ifndef CVY_CLI_BENCH_H
#define CVY_CLI_BENCH_H

#include "cli/command.h"

#define BENCH_GROUPS \
    &group_shape, &group_batch, &group_devices, &group_kernels, &group_step, &group_optimizer, &group_seed

extern const struct flag_group group_bench;

#endif

/* For tests of sessions: more setups than those of session_matrix.h, in groups that must each end with bits of its own:
   more shards than there, numbers of them that no power of two divides, the other algorithm of convolutions, updates of
   several batches, batch-norm over all shards. */
#ifndef CVY_ENGINE_SESSION_GROUPS_H
#define CVY_ENGINE_SESSION_GROUPS_H

#include "engine/session_matrix.h"

static const struct {
    int64_t shards, accumulate;
    bool sync_bn;
    const char *conv_algo;
    struct setup setups[16];
} groups[] = {
    {.shards = 8,
     .accumulate = 1,
     .conv_algo = "direct",
     .setups = {{"cpu:0", "single", false, false, NULL, NULL},
                {"cpu:0-1", "dp", false, false, NULL, NULL},
                {"cpu:0-3", "dp", false, false, NULL, NULL},
                {"cpu:0-1", "ddp", false, false, NULL, NULL},
                {"cpu:0-3", "ddp", false, false, NULL, NULL},
                {"cpu:0-7", "ddp", false, false, NULL, NULL},
                {"cpu:0-1", "mp", false, false, NULL, NULL},
                {"cpu:0-1", "pipeline", false, false, "gpipe", NULL},
                {"cpu:0-1", "pipeline", false, false, "1f1b", NULL},
                {"cpu:0-3", "pipeline", false, false, "gpipe", NULL},
                {"cpu:0-3", "pipeline", false, false, "1f1b", NULL},
                {"cpu:0-3", "hybrid", false, false, "1f1b", "data=2,pipe=2"},
                {"cpu:0-7", "hybrid", false, false, "1f1b", "data=4,pipe=2"},
                {"cpu:0-3", "hybrid", false, false, "gpipe", "data=2,pipe=2"}}},
    {.shards = 3,
     .accumulate = 1,
     .conv_algo = "direct",
     .setups = {{"cpu:0", "single", false, false, NULL, NULL},
                {"cpu:0-1", "ddp", false, false, NULL, NULL},
                {"cpu:0-2", "dp", false, false, NULL, NULL},
                {"cpu:0-3", "pipeline", false, false, "1f1b", NULL},
                {"cpu:0-3", "pipeline", false, false, "gpipe", NULL},
                {"cpu:0-3", "hybrid", false, false, "1f1b", "data=2,pipe=2"}}},
    {.shards = 5,
     .accumulate = 1,
     .conv_algo = "direct",
     .setups = {{"cpu:0", "single", false, false, NULL, NULL},
                {"cpu:0-1", "ddp", false, false, NULL, NULL},
                {"cpu:0-2", "dp", false, false, NULL, NULL},
                {"cpu:0-3", "pipeline", false, false, "1f1b", NULL},
                {"cpu:0-3", "hybrid", false, false, "gpipe", "data=2,pipe=2"}}},
    {.shards = 4,
     .accumulate = 1,
     .conv_algo = "winograd",
     .setups = {{"cpu:0", "single", false, false, NULL, NULL},
                {"cpu:0-1", "ddp", false, false, NULL, NULL},
                {"cpu:0-1", "pipeline", false, false, "1f1b", NULL}}},
    {.shards = 4,
     .accumulate = 2,
     .conv_algo = "direct",
     .setups = {{"cpu:0", "single", false, false, NULL, NULL},
                {"cpu:0-1", "ddp", false, false, NULL, NULL},
                {"cpu:0-1", "ddp", true, false, NULL, NULL},
                {"cpu:0-1", "dp", false, false, NULL, NULL},
                {"cpu:0-1", "pipeline", false, false, "1f1b", NULL},
                {"cpu:0-3", "hybrid", true, false, "gpipe", "data=2,pipe=2"}}},
    {.shards = 4,
     .accumulate = 1,
     .sync_bn = true,
     .conv_algo = "direct",
     .setups = {{"cpu:0", "single", false, false, NULL, NULL},
                {"cpu:0-1", "ddp", false, false, NULL, NULL},
                {"cpu:0-2", "ddp", false, false, NULL, NULL},
                {"cpu:0-1", "ddp", true, false, NULL, NULL},
                {"cpu:0-3", "dp", false, false, NULL, NULL}}},
};
enum { N_GROUPS = sizeof groups / sizeof *groups };

static inline cvy_plan_options options_in(int group, const struct setup *setup, const char *backend) {
    cvy_plan_options options = options_of(setup, backend, 1);
    options.shards = groups[group].shards;
    options.accumulate = groups[group].accumulate;
    options.conv_algo = groups[group].conv_algo;
    options.sync_bn = groups[group].sync_bn;
    return options;
}

#endif

/* convoy data pack: a data set of image files, written as tar shards. */
#include "cli/command.h"
#include "cli/reading.h"
#include "data/pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of the shards is made when it is not there; among class folders it would be a class. */
static cvy_status check_folder(const char *spec, const char *prefix) {
    char *dir = strdup(prefix), *slash = dir ? strrchr(dir, '/') : NULL;
    cvy_status status = dir ? CVY_OK : CVY_FAIL(CVY_ERR_MEMORY, "%s: out of memory", prefix);
    if (slash && slash > dir) {
        *slash = '\0';
        if (access(dir, F_OK) != 0)
            status = cvy_dataset_check_output(spec, dir);
        if (status != CVY_OK)
            status = cvy_fail_prefix(status, "--to tar:");
    }
    free(dir);
    return status;
}

static cvy_status pack_spec(const char *spec, const struct options *options, const cvy_log_sink *log) {
    static const char format[] = "tar:";
    cvy_dataset *train = NULL, *val = NULL;
    struct cvy_pack pack = {.max_side = options->max_side,
                            .shard_bytes = options->shard_size,
                            .n_workers = (int)options->workers};
    cvy_status status;
    if (!options->to || strncmp(options->to, format, sizeof format - 1) != 0)
        return CVY_FAIL(CVY_ERR_USAGE, "name where the shards go, as in --to tar:packed/photos");
    pack.prefix = options->to + sizeof format - 1;
    CVY_TRY_OUT(check_folder(spec, pack.prefix));
    CVY_TRY_OUT(cvy_dataset_open(spec, CVY_SPLIT_TRAIN, log, &train));
    CVY_TRY_OUT(cvy_dataset_open(spec, CVY_SPLIT_VAL, log, &val));
    CVY_TRY_OUT(cvy_pack_write(train, val, &pack));
    printf("packed: %lld training and %lld validation images, %lld shards of %.1f MB in all",
           (long long)train->n, (long long)val->n, (long long)pack.n_shards, (double)pack.n_bytes / 1e6);
    if (options->max_side)
        printf(", %lld made smaller (JPEG quality %d)", (long long)pack.n_encoded, CVY_PACK_QUALITY);
    printf("\n--data 'tar:%s-train-*.tar,val=%s-val-*.tar'\n", pack.prefix, pack.prefix);
out:
    cvy_dataset_free(train);
    cvy_dataset_free(val);
    return status;
}

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    if (values->rest.n != 1)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "name one data set, as in `convoy data pack folder:DIR --to tar:PREFIX`");
    return pack_spec(values->rest.data[0], values->options, log);
}

static const struct flag pack_flags[] = {
    {.name = "to",
     .type = FLAG_TEXT,
     .offset = offsetof(struct options, to),
     .help = "where: PREFIX-train-00000.tar and so on; nothing is written over",
     .value_name = "tar:PREFIX"},
    {.name = "max-side",
     .type = FLAG_INT,
     .offset = offsetof(struct options, max_side),
     .help =
         "images with a longer side become JPEG of quality 90 with this one; the bytes of others are copied",
     .initial = "0",
     .min = 0,
     .max = 65500},
    {.name = "shard-size",
     .type = FLAG_BYTES,
     .offset = offsetof(struct options, shard_size),
     .help = "a shard ends with the image that reaches this",
     .initial = "500M"},
};
static const struct flag_group group_pack = {
    .title = "Packing", .flags = pack_flags, .n = sizeof pack_flags / sizeof pack_flags[0]};

static const struct flag_group *const groups[] = {&group_pack, &group_reading, &group_common, NULL};

const struct command command_data_pack = {
    .name = "data pack",
    .usage = "SPEC --to tar:PREFIX [flags]",
    .help = "write a data set of image files as tar shards",
    .groups = groups,
    .run = run,
};

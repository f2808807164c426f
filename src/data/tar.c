/* tar:GLOB[,val=GLOB], tar archives of images as WebDataset writes them: labels stand in a .cls beside the image, or
   are the name of its folder. Each shard has an index (tar_index.h), so that samples are read in any order.
   Splits: with val= the second shards are the validation set, and the first ones rule the classes. Without it every
   tenth image of each class is held out, as in folder:. */
#include "base/mem.h"
#include "base/text.h"
#include "data/decode.h"
#include "data/files.h"
#include "data/scan.h"
#include "data/tar_classes.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sample {
    uint32_t shard, index; /* within the shard */
    int32_t label;
};

struct tar_set {
    struct cvy_dataset head;
    CVY_VEC(struct cvy_tar_shard) shards;
    CVY_VEC(struct sample) samples;
};

static const struct tar_set *set_of(const struct cvy_dataset *dataset) {
    return (const struct tar_set *)dataset;
}

static void free_shards(struct tar_set *set) {
    for (size_t s = 0; s < set->shards.n; s++) {
        free(set->shards.data[s].path);
        cvy_tar_index_free(&set->shards.data[s].index);
    }
    cvy_vec_free(&set->shards);
}

static void tar_free(struct cvy_dataset *dataset) {
    struct tar_set *set = (struct tar_set *)dataset;
    free_shards(set);
    cvy_vec_free(&set->samples);
    free(set);
}

/* ---- opening --------------------------------------------------------------------------------------- */

static cvy_status add_shard(struct tar_set *set, const char *path) {
    CVY_TRY(cvy_vec_push(&set->shards, (struct cvy_tar_shard){0}));
    struct cvy_tar_shard *shard = &set->shards.data[set->shards.n - 1];
    shard->path = strdup(path);
    if (!shard->path)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for '%s'", path);
    CVY_TRY(cvy_tar_index_open(path, &shard->index));
    return CVY_OK;
}

/* The shards that a pattern names, sorted by bytes. */
static cvy_status add_shards(struct tar_set *set, const char *pattern) {
    glob_t found = {0};
    cvy_status status = CVY_OK;
    int code = glob(pattern, GLOB_NOSORT, NULL, &found);
    if (code == GLOB_NOMATCH)
        status =
            CVY_FAIL(CVY_ERR_DATA, "%s: no file matches, name the shards as in tar:'photos-*.tar'", pattern);
    else if (code != 0)
        status = CVY_FAIL(CVY_ERR_IO, "%s: the shards cannot be listed", pattern);
    if (status == CVY_OK)
        qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, cvy_compare_names);
    for (size_t i = 0; status == CVY_OK && i < found.gl_pathc; i++)
        status = add_shard(set, found.gl_pathv[i]);
    globfree(&found);
    return status;
}

/* `keep`: which of each class; `seen` and `labels` are working memory. */
static cvy_status add_samples(struct tar_set *set, const struct cvy_tar_classes *classes,
                              enum cvy_keep keep) {
    int64_t *seen = NULL;
    int32_t *labels = NULL;
    cvy_status status;
    CVY_TRY_OUT(CVY_ALLOC(seen, (size_t)classes->n));
    for (size_t s = 0; s < set->shards.n; s++) {
        const struct cvy_tar_shard *shard = &set->shards.data[s];
        free(labels);
        CVY_TRY_OUT(CVY_ALLOC(labels, shard->index.n));
        CVY_TRY_OUT(cvy_tar_classes_label(classes, shard, labels));
        for (size_t i = 0; i < shard->index.n; i++) {
            if (cvy_is_kept(keep, seen[labels[i]]++))
                CVY_TRY_OUT(
                    cvy_vec_push(&set->samples, (struct sample){(uint32_t)s, (uint32_t)i, labels[i]}));
        }
    }
    set->head.n = (int64_t)set->samples.n;
out:
    free(seen);
    free(labels);
    return status;
}

static cvy_status warn_of_others(const struct tar_set *set, const char *pattern, const cvy_log_sink *log) {
    struct cvy_others all = {{0}};
    for (size_t s = 0; s < set->shards.n; s++)
        cvy_others_add(&all, &set->shards.data[s].index.others);
    return cvy_others_warn(&all, pattern, log);
}

static cvy_status fill(struct tar_set *set, const char *train, const char *val, cvy_split split,
                       const cvy_log_sink *log) {
    struct cvy_tar_classes classes = {0};
    enum cvy_keep keep = val ? CVY_KEEP_ALL : split == CVY_SPLIT_VAL ? CVY_KEEP_HELD_OUT : CVY_KEEP_TRAIN;
    cvy_status status;
    CVY_TRY_OUT(add_shards(set, train));
    if (split == CVY_SPLIT_TRAIN)
        CVY_TRY_OUT(warn_of_others(set, train, log));
    CVY_TRY_OUT(cvy_tar_classes_find(set->shards.data, set->shards.n, &set->head, &classes));
    if (val && split == CVY_SPLIT_VAL) {
        free_shards(set);
        CVY_TRY_OUT(add_shards(set, val));
        CVY_TRY_OUT(warn_of_others(set, val, log));
    }
    CVY_TRY_OUT(add_samples(set, &classes, keep));
    if (set->head.n == 0 && keep == CVY_KEEP_HELD_OUT)
        status = CVY_FAIL(CVY_ERR_DATA, "%s: no class has %d images, so none is held out: add ,val=GLOB",
                          train, CVY_HOLD_OUT);
    else if (set->head.n == 0)
        status = CVY_FAIL(CVY_ERR_DATA, "%s: holds no images (.jpg, .jpeg, .png, .webp)", val);
    else if (keep == CVY_KEEP_HELD_OUT)
        cvy_log(log, CVY_LOG_INFO, "tar:%s has no ,val=GLOB: every %dth image of each class is held out",
                train, CVY_HOLD_OUT);
out:
    cvy_vec_free(&classes.sorted);
    return status;
}

static cvy_status tar_open(const char *argument, cvy_split split, const cvy_log_sink *log,
                           struct cvy_dataset **out) {
    static const char mark[] = ",val=";
    struct tar_set *set;
    if (!*argument || *argument == ',')
        return CVY_FAIL(CVY_ERR_USAGE, "data 'tar:%s': name the shards, as in tar:'photos-*.tar'", argument);
    char *train = strdup(argument), *val = train ? strstr(train, mark) : NULL;
    if (!train)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for '%s'", argument);
    if (val) {
        *val = '\0';
        val += sizeof mark - 1;
    }
    cvy_status status = CVY_ALLOC(set, 1);
    if (status == CVY_OK) {
        cvy_dataset_set_rgb(&set->head);
        *out = &set->head;
        status = fill(set, train, val, split, log);
    }
    free(train);
    return status;
}

/* ---- samples --------------------------------------------------------------------------------------- */

static const struct cvy_tar_shard *find(const struct cvy_dataset *dataset, int64_t i,
                                        const struct cvy_tar_sample **sample) {
    const struct sample *at = &set_of(dataset)->samples.data[i];
    const struct cvy_tar_shard *shard = &set_of(dataset)->shards.data[at->shard];
    *sample = &shard->index.samples[at->index];
    return shard;
}

static void tar_name(const struct cvy_dataset *dataset, int64_t i, struct cvy_text *out) {
    const struct cvy_tar_sample *sample;
    const struct cvy_tar_shard *shard = find(dataset, i, &sample);
    cvy_text_printf(out, "%s: %s", shard->path, shard->index.text + sample->name);
}

/* A shard is opened for each image: thousands of them may be more than a process may hold open. */
static cvy_status tar_encoded(const struct cvy_dataset *dataset, int64_t i, char **out, size_t *n_bytes) {
    const struct cvy_tar_sample *sample;
    const struct cvy_tar_shard *shard = find(dataset, i, &sample);
    int64_t size, mtime;
    int fd;
    if (sample->size > CVY_MAX_FILE_BYTES)
        return cvy_dataset_name_error(
            dataset, i, CVY_FAIL(CVY_ERR_DATA, "has %u bytes, more than an image may have", sample->size));
    CVY_TRY(cvy_tar_open(shard->path, &fd, &size, &mtime));
    cvy_status status;
    if (size != shard->index.size || mtime != shard->index.mtime)
        status = CVY_FAIL(CVY_ERR_DATA, "%s: was changed since it was opened: start again", shard->path);
    else
        status = cvy_read_piece(fd, shard->path, sample->offset, sample->size, out);
    *n_bytes = sample->size;
    close(fd);
    return status;
}

static cvy_status tar_label(const struct cvy_dataset *dataset, int64_t i, int64_t *out) {
    *out = set_of(dataset)->samples.data[i].label;
    return CVY_OK;
}

const struct cvy_format cvy_format_tar = {
    .prefix = "tar",
    .help =
        "tar:GLOB[,val=GLOB]   shards of JPEG, PNG and WebP files with .cls beside them, or in class folders",
    .open = tar_open,
    .free = tar_free,
    .encoded = tar_encoded,
    .label = tar_label,
    .name = tar_name,
};

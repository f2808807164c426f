/* See pack.h. A shard holds the list of classes, then for each sample NUMBER.EXT and NUMBER.cls, the place of its class
   in the list. Workers make the samples (pack_sample.c), the calling thread writes them in their order. Until all are
   whole, the shards have temporary names; only the one that grows is open. */
#include "data/pack.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/vec.h"
#include "data/pack_sample.h"
#include "data/prefetch.h"
#include "data/tar_index.h"
#include "data/tar_writer.h"

#include <glob.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_SLOTS = 2, SAMPLES_PER_WORKER = 8 }; /* of a batch: so many samples lie in memory, times N_SLOTS */

struct shard {
    char *path;
    struct cvy_tar_writer tar;
};

struct run {
    struct cvy_pack *pack;
    struct cvy_text classes;
    CVY_VEC(struct shard) shards;
    bool is_open; /* the last of them still grows */
};

static const char *split_name(const struct cvy_dataset *dataset) {
    return dataset->split == CVY_SPLIT_TRAIN ? "train" : "val";
}

static cvy_status check_prefix(const struct cvy_pack *pack, const struct cvy_dataset *dataset) {
    struct cvy_text pattern = {0};
    char *text;
    glob_t found = {0};
    if (!dataset->format->encoded)
        return CVY_FAIL(CVY_ERR_USAGE, "'%s': its samples are no image files, nothing can be packed",
                        dataset->spec);
    if (!*pack->prefix || strpbrk(pack->prefix, "*?[\\,"))
        return CVY_FAIL(CVY_ERR_USAGE, "'%s': give a prefix of file names without any of *?[\\,",
                        pack->prefix);
    cvy_text_printf(&pattern, "%s-%s-*.tar", pack->prefix, split_name(dataset));
    CVY_TRY(cvy_text_take(&pattern, &text));
    int code = glob(text, 0, NULL, &found);
    cvy_status status =
        code == 0 ? CVY_FAIL(CVY_ERR_USAGE, "%s: is there already: name another prefix, or remove it",
                             found.gl_pathv[0])
                  : CVY_OK;
    globfree(&found);
    free(text);
    return status;
}

/* A name must come back as it is from a line of the list. */
static cvy_status list_classes(struct run *run, const struct cvy_dataset *dataset) {
    static const char blanks[] = " \t\r\n";
    for (int64_t k = 0; k < dataset->n_classes; k++) {
        const char *name = dataset->class_names[k];
        size_t n = strlen(name);
        if (n == 0 || strchr(name, '\n') || strchr(blanks, name[0]) || strchr(blanks, name[n - 1]))
            return CVY_FAIL(CVY_ERR_DATA,
                            "'%s': class %lld has a name with a blank at an end or a line break",
                            dataset->spec, (long long)k);
        cvy_text_printf(&run->classes, "%s\n", name);
    }
    return run->classes.status;
}

/* ---- shards -------------------------------------------------------------------------------------- */

static struct cvy_tar_writer *last_of(struct run *run) { return &run->shards.data[run->shards.n - 1].tar; }

static cvy_status begin_shard(struct run *run, const struct cvy_dataset *dataset, int64_t number) {
    struct cvy_text text = {0};
    char *path;
    CVY_TRY(cvy_vec_grow(&run->shards, 1));
    cvy_text_printf(&text, "%s-%s-%05lld.tar", run->pack->prefix, split_name(dataset), (long long)number);
    CVY_TRY(cvy_text_take(&text, &path));
    run->shards.data[run->shards.n++] = (struct shard){.path = path};
    CVY_TRY(cvy_make_folders_above(path));
    CVY_TRY(cvy_tar_writer_begin(last_of(run), path));
    CVY_TRY(cvy_tar_writer_add(last_of(run), CVY_TAR_CLASSES, run->classes.data, run->classes.n));
    run->is_open = true;
    return CVY_OK;
}

static cvy_status end_shard(struct run *run) {
    if (!run->is_open)
        return CVY_OK;
    run->is_open = false;
    CVY_TRY(cvy_tar_writer_end(last_of(run)));
    CVY_TRY(cvy_writer_close(&last_of(run)->file));
    return CVY_OK;
}

static cvy_status add_sample(struct run *run, int64_t i, const struct cvy_pack_sample *sample) {
    char name[64], class[32];
    snprintf(name, sizeof name, "%09lld.%s", (long long)i, sample->suffix);
    CVY_TRY(cvy_tar_writer_add(last_of(run), name, sample->bytes, sample->n_bytes));
    snprintf(name, sizeof name, "%09lld.cls", (long long)i);
    int n_class = snprintf(class, sizeof class, "%lld", (long long)sample->label);
    CVY_TRY(cvy_tar_writer_add(last_of(run), name, class, (size_t)n_class));
    run->pack->n_encoded += sample->is_smaller;
    return CVY_OK;
}

/* All get their names, or none. */
static cvy_status commit_all(struct run *run) {
    struct cvy_pack *pack = run->pack;
    cvy_status status;
    size_t n = 0;
    for (; n < run->shards.n; n++)
        CVY_TRY_OUT(cvy_writer_commit(&run->shards.data[n].tar.file));
    if (n > 0) {
        char *path = strdup(run->shards.data[0].path);
        status = path ? cvy_sync_folder(dirname(path)) : CVY_FAIL(CVY_ERR_MEMORY, "out of memory");
        free(path);
        CVY_TRY_OUT(status);
    }
    for (size_t s = 0; s < n; s++)
        pack->n_bytes += run->shards.data[s].tar.n_bytes;
    pack->n_shards = (int64_t)n;
    return CVY_OK;
out:
    for (size_t s = 0; s < n; s++)
        unlink(run->shards.data[s].path);
    return status;
}

/* ---- samples ------------------------------------------------------------------------------------- */

/* What the workers use: it outlives the call when one of them does not come back. */
struct pass {
    const struct cvy_dataset *dataset;
    int64_t max_side;
    int n_workers;
    struct cvy_pack_memory *memories; /* one a worker */
    struct cvy_pack_sample *samples;  /* n_samples of them, sample i at i % n_samples */
    int64_t n_samples;
};

static void free_pass(struct pass *pass) {
    for (int k = 0; pass->memories && k < pass->n_workers; k++)
        cvy_pack_memory_free(&pass->memories[k]);
    for (int64_t k = 0; pass->samples && k < pass->n_samples; k++)
        free(pass->samples[k].bytes);
    free(pass->memories);
    free(pass->samples);
    free(pass);
}

/* As struct cvy_prefetch_job has it. */
static cvy_status make_sample(void *context, int worker, int64_t i) {
    const struct pass *pass = context;
    return cvy_pack_sample_make(pass->dataset, i, pass->max_side, &pass->memories[worker],
                                &pass->samples[i % pass->n_samples]);
}

static cvy_status fail_late(void *context, int worker, int64_t i, double seconds) {
    const struct pass *pass = context;
    (void)worker;
    return cvy_dataset_fail_late(pass->dataset, i, seconds);
}

static cvy_status write_all(struct run *run, struct pass *pass, struct cvy_prefetch *prefetch) {
    const int64_t n = pass->dataset->n, batch = pass->n_samples / N_SLOTS;
    const struct cvy_prefetch_job job = {.n = n,
                                         .batch_size = batch,
                                         .n_slots = N_SLOTS,
                                         .run = make_sample,
                                         .fail_late = fail_late,
                                         .context = pass};
    int64_t number = 0;
    CVY_TRY(cvy_prefetch_start(prefetch, &job));
    for (int64_t i = 0; i < n; i++) {
        struct cvy_pack_sample *sample = &pass->samples[i % pass->n_samples];
        if (i % batch == 0)
            CVY_TRY(cvy_prefetch_wait(prefetch, i / batch));
        if (!run->is_open)
            CVY_TRY(begin_shard(run, pass->dataset, number++));
        CVY_TRY(add_sample(run, i, sample));
        free(sample->bytes);
        sample->bytes = NULL;
        if (last_of(run)->n_bytes >= run->pack->shard_bytes)
            CVY_TRY(end_shard(run));
    }
    CVY_TRY(end_shard(run));
    return CVY_OK;
}

static cvy_status write_split(struct run *run, const struct cvy_dataset *dataset) {
    const int n_workers = run->pack->n_workers;
    struct cvy_prefetch *prefetch = NULL;
    struct pass *pass;
    cvy_status status;
    CVY_TRY(CVY_ALLOC(pass, 1));
    *pass = (struct pass){.dataset = dataset,
                          .max_side = run->pack->max_side,
                          .n_workers = n_workers,
                          .n_samples = (int64_t)n_workers * SAMPLES_PER_WORKER * N_SLOTS};
    CVY_TRY_OUT(CVY_ALLOC(pass->memories, (size_t)n_workers));
    CVY_TRY_OUT(CVY_ALLOC(pass->samples, (size_t)pass->n_samples));
    CVY_TRY_OUT(cvy_prefetch_new(n_workers, &prefetch));
    CVY_TRY_OUT(write_all(run, pass, prefetch));
out:
    if (cvy_prefetch_leave(prefetch, pass))
        free_pass(pass);
    else
        cvy_dataset_abandon(dataset);
    return status;
}

cvy_status cvy_pack_write(const struct cvy_dataset *train, const struct cvy_dataset *val,
                          struct cvy_pack *pack) {
    struct run run = {.pack = pack};
    cvy_status status;
    CVY_TRY_OUT(check_prefix(pack, train));
    CVY_TRY_OUT(check_prefix(pack, val));
    CVY_TRY_OUT(list_classes(&run, train));
    CVY_TRY_OUT(write_split(&run, train));
    CVY_TRY_OUT(write_split(&run, val));
    CVY_TRY_OUT(commit_all(&run));
out:
    for (size_t s = 0; s < run.shards.n; s++) {
        cvy_writer_abandon(&run.shards.data[s].tar.file);
        free(run.shards.data[s].path);
    }
    cvy_vec_free(&run.shards);
    cvy_text_free(&run.classes);
    return status;
}

/* See pack.h. A shard holds the list of classes, then for each sample NUMBER.EXT and NUMBER.cls, the place of its class
   in the list. Until all are whole, the shards have temporary names. */
#include "data/pack.h"

#include "base/text.h"
#include "base/vec.h"
#include "data/decode.h"
#include "data/encode_jpeg.h"
#include "data/file_facts.h"
#include "data/resize.h"
#include "data/tar_index.h"
#include "data/tar_writer.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHARDS = 900 }; /* each is an open file, of which processes may mostly have 1024 */

struct run {
    struct cvy_pack *pack;
    struct cvy_text classes;
    CVY_VEC(struct cvy_tar_writer) shards;
    bool is_open; /* the last of them still grows */
    struct cvy_image whole, small;
    struct cvy_resizer resizer;
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

static cvy_status begin_shard(struct run *run, const struct cvy_dataset *dataset, int64_t number) {
    struct cvy_text text = {0};
    char *path;
    if (run->shards.n == MAX_SHARDS)
        return CVY_FAIL(CVY_ERR_USAGE, "more than %d shards: give a larger --shard-size", MAX_SHARDS);
    CVY_TRY(cvy_vec_push(&run->shards, (struct cvy_tar_writer){0}));
    struct cvy_tar_writer *shard = &run->shards.data[run->shards.n - 1];
    cvy_text_printf(&text, "%s-%s-%05lld.tar", run->pack->prefix, split_name(dataset), (long long)number);
    CVY_TRY(cvy_text_take(&text, &path));
    cvy_status status = cvy_tar_writer_begin(shard, path);
    free(path);
    if (status == CVY_OK)
        status = cvy_tar_writer_add(shard, CVY_TAR_CLASSES, run->classes.data, run->classes.n);
    run->is_open = status == CVY_OK;
    return status;
}

static cvy_status end_shard(struct run *run) {
    if (run->is_open)
        CVY_TRY(cvy_tar_writer_end(&run->shards.data[run->shards.n - 1]));
    run->is_open = false;
    return CVY_OK;
}

/* ---- samples ------------------------------------------------------------------------------------- */

/* The same image of a longer side of max_side, in place of the bytes. */
static cvy_status encode_smaller(struct run *run, char **bytes, size_t *n_bytes) {
    int64_t max = run->pack->max_side;
    unsigned char *encoded;
    CVY_TRY(cvy_decode(*bytes, *n_bytes, CVY_MAX_PIXELS, false, NULL, &run->whole));
    const int64_t h = run->whole.height, w = run->whole.width, longer = h > w ? h : w;
    int64_t height = (h * max + longer / 2) / longer, width = (w * max + longer / 2) / longer;
    CVY_TRY(cvy_resize(&run->resizer, &run->whole, height ? height : 1, width ? width : 1, &run->small));
    CVY_TRY(cvy_encode_jpeg(&run->small, CVY_PACK_QUALITY, &encoded, n_bytes));
    free(*bytes);
    *bytes = (char *)encoded;
    run->pack->n_encoded++;
    return CVY_OK;
}

static cvy_status add_sample(struct run *run, const struct cvy_dataset *dataset, int64_t i, char **bytes,
                             size_t n_bytes) {
    struct cvy_tar_writer *shard = &run->shards.data[run->shards.n - 1];
    struct cvy_file_facts facts = {0};
    char name[64], class[32];
    int64_t label;
    cvy_file_facts(*bytes, n_bytes, &facts);
    if (!facts.format)
        return CVY_FAIL(CVY_ERR_DATA, "is no JPEG, PNG or WebP image: `convoy data check` lists all such");
    bool is_large = facts.width > run->pack->max_side || facts.height > run->pack->max_side;
    if (run->pack->max_side && is_large) {
        CVY_TRY(encode_smaller(run, bytes, &n_bytes));
        facts.format = "JPEG";
    }
    const char *suffix = strcmp(facts.format, "JPEG") == 0  ? "jpg"
                         : strcmp(facts.format, "PNG") == 0 ? "png"
                                                            : "webp";
    CVY_TRY(cvy_dataset_label(dataset, i, &label));
    snprintf(name, sizeof name, "%09lld.%s", (long long)i, suffix);
    CVY_TRY(cvy_tar_writer_add(shard, name, *bytes, n_bytes));
    snprintf(name, sizeof name, "%09lld.cls", (long long)i);
    int n_class = snprintf(class, sizeof class, "%lld", (long long)label);
    CVY_TRY(cvy_tar_writer_add(shard, name, class, (size_t)n_class));
    return CVY_OK;
}

static cvy_status name_error(const struct cvy_dataset *dataset, int64_t i, cvy_status status) {
    if (dataset->format->path)
        return cvy_fail_prefix(status, "%s: ", dataset->format->path(dataset, i));
    return cvy_fail_prefix(status, "'%s': image %lld: ", dataset->spec, (long long)i);
}

static cvy_status write_split(struct run *run, const struct cvy_dataset *dataset) {
    int64_t number = 0;
    for (int64_t i = 0; i < dataset->n; i++) {
        char *bytes;
        size_t n_bytes;
        CVY_TRY(dataset->format->encoded(dataset, i, &bytes, &n_bytes));
        cvy_status status = run->is_open ? CVY_OK : begin_shard(run, dataset, number++);
        if (status == CVY_OK) {
            status = add_sample(run, dataset, i, &bytes, n_bytes);
            status = status == CVY_ERR_DATA ? name_error(dataset, i, status) : status;
        }
        free(bytes);
        CVY_TRY(status);
        if (run->shards.data[run->shards.n - 1].n_bytes >= run->pack->shard_bytes)
            CVY_TRY(end_shard(run));
    }
    CVY_TRY(end_shard(run));
    return CVY_OK;
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
    for (size_t s = 0; s < run.shards.n; s++) {
        pack->n_bytes += run.shards.data[s].n_bytes;
        CVY_TRY_OUT(cvy_writer_commit(&run.shards.data[s].file));
        pack->n_shards++;
    }
out:
    for (size_t s = 0; s < run.shards.n; s++)
        cvy_writer_abandon(&run.shards.data[s].file);
    cvy_vec_free(&run.shards);
    cvy_text_free(&run.classes);
    cvy_image_free(&run.whole);
    cvy_image_free(&run.small);
    cvy_resizer_free(&run.resizer);
    return status;
}

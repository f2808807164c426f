/* Sets of image files. Files are opened when they are read, never when the set is made. */
#include "data/files.h"

#include "base/text.h"
#include "data/decode.h"

#include <stdlib.h>
#include <string.h>

static struct cvy_file_set *set_of(const struct cvy_dataset *dataset) {
    return (struct cvy_file_set *)dataset;
}

cvy_status cvy_file_set_new(struct cvy_file_set **out) {
    CVY_TRY(CVY_ALLOC(*out, 1));
    cvy_dataset_set_rgb(&(*out)->head);
    return CVY_OK;
}

void cvy_file_set_free(struct cvy_dataset *dataset) {
    struct cvy_file_set *set = set_of(dataset);
    cvy_vec_free(&set->samples);
    cvy_pool_free(&set->pool);
    free(set);
}

cvy_status cvy_file_set_read(const struct cvy_dataset *dataset, int64_t i, struct cvy_image *image) {
    CVY_TRY(cvy_file_set_read_part(dataset, i, NULL, image));
    return CVY_OK;
}

cvy_status cvy_file_set_read_part(const struct cvy_dataset *dataset, int64_t i,
                                  const struct cvy_image_part *part, struct cvy_image *image) {
    CVY_TRY(cvy_decode_file(set_of(dataset)->samples.data[i].path, part, image));
    return CVY_OK;
}

cvy_status cvy_file_set_label(const struct cvy_dataset *dataset, int64_t i, int64_t *out) {
    *out = set_of(dataset)->samples.data[i].label;
    return CVY_OK;
}

cvy_status cvy_file_set_encoded(const struct cvy_dataset *dataset, int64_t i, char **out, size_t *n_bytes) {
    CVY_TRY(cvy_read_file(set_of(dataset)->samples.data[i].path, CVY_MAX_FILE_BYTES, out, n_bytes));
    return CVY_OK;
}

const char *cvy_file_set_path(const struct cvy_dataset *dataset, int64_t i) {
    return set_of(dataset)->samples.data[i].path;
}

static const struct cvy_format files_format = {
    /* no spec leads here, so it is in no table */
    .prefix = "files",         .help = "files   a list of image files, without labels",
    .free = cvy_file_set_free, .read = cvy_file_set_read,
    .path = cvy_file_set_path, .read_part = cvy_file_set_read_part,
};

/* What messages call the set: "a.jpg", or "a.jpg and 3 more". */
static cvy_status name_set(const char *const *paths, int64_t n, char **out) {
    struct cvy_text name = {0};
    cvy_text_printf(&name, "%s", paths[0]);
    if (n > 1)
        cvy_text_printf(&name, " and %lld more", (long long)(n - 1));
    return cvy_text_take(&name, out);
}

cvy_status cvy_dataset_open_files(const char *const *paths, int64_t n, cvy_dataset **out) {
    struct cvy_file_set *set;
    cvy_status status;
    if (n < 1)
        return CVY_FAIL(CVY_ERR_USAGE, "no image files are given");
    CVY_TRY(cvy_file_set_new(&set));
    set->head.format = &files_format;
    set->head.is_unlabelled = true;
    set->head.split = CVY_SPLIT_VAL;
    set->head.n = n;
    CVY_TRY_OUT(name_set(paths, n, &set->head.spec));
    for (int64_t i = 0; i < n; i++) {
        char *path;
        CVY_TRY_OUT(cvy_pool_strdup(&set->pool, paths[i], &path));
        CVY_TRY_OUT(cvy_vec_push(&set->samples, (struct cvy_file_sample){.path = path}));
    }
    *out = &set->head;
    return CVY_OK;
out:
    cvy_dataset_free(&set->head);
    return status;
}

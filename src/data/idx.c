/* idx:DIR, the files of the MNIST family (MNIST, Fashion-MNIST, KMNIST, EMNIST), plain or as .gz: an array of bytes
   after a header of two zeros, the element type, the number of dimensions and each of them as 32 bits, big-endian.
   (Y. LeCun, C. Cortes, C. Burges, The MNIST database.) Found by name: *train-images?idx3-ubyte* and
   *train-labels?idx1-ubyte*; t10k or test for validation. */
#include "base/mem.h"
#include "base/text.h"
#include "data/arrays.h"
#include "data/big_endian.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

enum { TYPE_U8 = 8, MAX_SIDE = 65536 };
static const size_t MAX_BYTES = (size_t)1 << 32; /* of an array */

struct files {
    const char *images, *labels;
};

/* The one file with a name such as *train-images?idx3-ubyte*; *out is owned by the pool, NULL when there is none. */
static cvy_status find_file(struct cvy_pool *pool, const char *dir, const char *part, const char *what,
                            const char **out) {
    char *pattern, *path;
    glob_t found;
    CVY_TRY(cvy_pool_printf(pool, &pattern, "%s/*%s-%s-ubyte*", dir, part, what));
    int code = glob(pattern, GLOB_NOSORT, NULL, &found);
    *out = NULL;
    if (code == GLOB_NOMATCH)
        return CVY_OK;
    if (code != 0)
        return CVY_FAIL(CVY_ERR_DATA, "%s: cannot be read as a folder", dir);
    cvy_status status = CVY_OK;
    if (found.gl_pathc > 1)
        status = CVY_FAIL(CVY_ERR_DATA, "%s: %s and %s both match: keep one set in a folder", dir,
                          found.gl_pathv[0], found.gl_pathv[1]);
    else
        status = cvy_pool_strdup(pool, found.gl_pathv[0], &path);
    globfree(&found);
    CVY_TRY(status);
    *out = path;
    return CVY_OK;
}

/* Loads an array of n_dims dimensions; *out are its elements. */
static cvy_status load(struct cvy_array_set *set, const char *path, int n_dims, int64_t *dims,
                       const uint8_t **out) {
    const uint8_t *bytes;
    size_t n_bytes, header = 4 + 4 * (size_t)n_dims, n = 1;
    CVY_TRY(cvy_array_set_load(set, path, MAX_BYTES, &bytes, &n_bytes));
    if (n_bytes < header || bytes[0] || bytes[1] || bytes[2] != TYPE_U8 || bytes[3] != n_dims)
        return CVY_FAIL(CVY_ERR_DATA, "%s: is no IDX file of bytes in %d dimensions", path, n_dims);
    for (int k = 0; k < n_dims; k++) {
        dims[k] = cvy_big_endian(bytes + 4 + 4 * (size_t)k, 4);
        if (__builtin_mul_overflow(n, (size_t)dims[k], &n))
            n = SIZE_MAX;
    }
    if (n_bytes - header != n)
        return CVY_FAIL(CVY_ERR_DATA, "%s: holds %zu bytes, its header says %zu", path, n_bytes - header, n);
    *out = bytes + header;
    return CVY_OK;
}

/* Files of a split; NULL where there is none. */
static cvy_status find_files(struct cvy_pool *pool, const char *dir, cvy_split split, struct files *out) {
    static const char *const train[] = {"train", NULL}, *const val[] = {"t10k", "test", NULL};
    const char *const *parts = split == CVY_SPLIT_TRAIN ? train : val;
    *out = (struct files){0};
    for (; *parts && !out->images; parts++) {
        CVY_TRY(find_file(pool, dir, *parts, "images?idx3", &out->images));
        CVY_TRY(find_file(pool, dir, *parts, "labels?idx1", &out->labels));
    }
    return CVY_OK;
}

static cvy_status load_samples(struct cvy_array_set *set, const struct files *files) {
    int64_t dims[3], n_labels;
    struct cvy_array array = {.label_stride = 1};
    CVY_TRY(load(set, files->images, 3, dims, &array.images));
    CVY_TRY(load(set, files->labels, 1, &n_labels, &array.labels));
    if (n_labels != dims[0])
        return CVY_FAIL(CVY_ERR_DATA, "%s: %lld labels for %lld images", files->labels, (long long)n_labels,
                        (long long)dims[0]);
    if (dims[0] < 1 || dims[1] < 1 || dims[2] < 1 || dims[1] > MAX_SIDE || dims[2] > MAX_SIDE)
        return CVY_FAIL(CVY_ERR_DATA,
                        "%s: it has %lld images of %lldx%lld: at least one, of sides of 1 to %d",
                        files->images, (long long)dims[0], (long long)dims[1], (long long)dims[2], MAX_SIDE);
    set->head.height = dims[1];
    set->head.width = dims[2];
    array.image_stride = (size_t)(dims[1] * dims[2]);
    array.n = dims[0];
    cvy_array_set_add(set, &array);
    return CVY_OK;
}

/* The classes are those of the training labels, in both splits. */
static cvy_status count_classes(struct cvy_array_set *set, const char *labels_path) {
    const uint8_t *labels;
    int64_t n, largest = 0;
    CVY_TRY(load(set, labels_path, 1, &n, &labels));
    for (int64_t i = 0; i < n; i++)
        largest = labels[i] > largest ? labels[i] : largest;
    CVY_TRY(cvy_dataset_number_classes(&set->head, largest + 1));
    return CVY_OK;
}

static cvy_status fill(struct cvy_array_set *set, const char *dir, cvy_split split, struct cvy_pool *pool) {
    struct files files, train;
    if (!*dir)
        return CVY_FAIL(CVY_ERR_USAGE, "data 'idx:': name the folder, as in idx:DIR");
    CVY_TRY(find_files(pool, dir, split, &files));
    CVY_TRY(find_files(pool, dir, CVY_SPLIT_TRAIN, &train));
    if (!files.images || !files.labels)
        return CVY_FAIL(CVY_ERR_DATA, "%s: there is no %s-%s-ubyte, nor with .gz", dir,
                        split == CVY_SPLIT_TRAIN ? "train" : "t10k",
                        files.images ? "labels-idx1" : "images-idx3");
    CVY_TRY(load_samples(set, &files));
    CVY_TRY(count_classes(set, train.labels ? train.labels : files.labels));
    return CVY_OK;
}

static cvy_status idx_open(const char *argument, cvy_split split, const cvy_log_sink *log,
                           struct cvy_dataset **out) {
    (void)log;
    struct cvy_array_set *set;
    struct cvy_pool pool = {0};
    CVY_TRY(cvy_array_set_new(1, 0, 0, &set));
    *out = &set->head;
    cvy_status status = fill(set, argument, split, &pool);
    cvy_pool_free(&pool);
    return status;
}

const struct cvy_format cvy_format_idx = {
    .prefix = "idx",
    .help = "idx:DIR   the MNIST family: train- and t10k-images-idx3-ubyte, labels-idx1-ubyte, plain or .gz",
    .open = idx_open,
    .free = cvy_array_set_free,
    .pixels = cvy_array_set_read,
    .label = cvy_array_set_label,
};

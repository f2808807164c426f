/* cifar10:DIR and cifar100:DIR, the "binary version" of the CIFAR sets as their authors publish it: records of the
   labels, a byte each, and 3 planes of 32 x 32. (A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images,
   2009.) DIR holds the .bin files, or the folder that the archive unpacks to. */
#include "base/mem.h"
#include "base/text.h"
#include "data/arrays.h"
#include "data/scan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 32, IMAGE_BYTES = 3 * SIDE * SIDE };

struct edition {
    const char *prefix, *folder, *names_file;
    const char *train[6], *val[2]; /* NULL ends them */
    int64_t n_classes;
    size_t
        n_labels; /* of a record; the last one counts: of CIFAR-100 the first is that of 20 groups of classes */
    float mean[3], std[3]; /* of the training images, over 255 */
};

static const struct edition cifar10 = {
    .prefix = "cifar10",
    .folder = "cifar-10-batches-bin",
    .names_file = "batches.meta.txt",
    .train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
              "data_batch_5.bin"},
    .val = {"test_batch.bin"},
    .n_classes = 10,
    .n_labels = 1,
    .mean = {0.4914f, 0.4822f, 0.4465f},
    .std = {0.2470f, 0.2435f, 0.2616f},
};

static const struct edition cifar100 = {
    .prefix = "cifar100",
    .folder = "cifar-100-binary",
    .names_file = "fine_label_names.txt",
    .train = {"train.bin"},
    .val = {"test.bin"},
    .n_classes = 100,
    .n_labels = 2,
    .mean = {0.5071f, 0.4865f, 0.4409f},
    .std = {0.2673f, 0.2564f, 0.2762f},
};

static cvy_status add_file(struct cvy_array_set *set, const struct edition *edition, const char *path) {
    const size_t record = edition->n_labels + IMAGE_BYTES;
    const uint8_t *bytes;
    size_t n_bytes;
    CVY_TRY(cvy_array_set_load(set, path, (size_t)1 << 31, &bytes, &n_bytes));
    if (n_bytes % record != 0)
        return CVY_FAIL(
            CVY_ERR_DATA,
            "%s: %zu bytes are no whole number of records of %zu: it is cut short, or not the binary version "
            "of %s",
            path, n_bytes, record, edition->prefix);
    const struct cvy_array array = {
        .images = bytes + edition->n_labels,
        .labels = bytes + edition->n_labels - 1,
        .image_stride = record,
        .label_stride = record,
        .n = (int64_t)(n_bytes / record),
    };
    cvy_array_set_add(set, &array);
    return CVY_OK;
}

/* A line a class; the set has numbers for names when there is no such file. */
static cvy_status read_names(struct cvy_dataset *head, const struct edition *edition, const char *path) {
    enum { MAX_BYTES = 1 << 16 };
    char *text, *rest;
    size_t n_bytes;
    int64_t k = 0;
    CVY_TRY(cvy_dataset_number_classes(head, edition->n_classes));
    if (access(path, F_OK) != 0)
        return CVY_OK;
    CVY_TRY(cvy_read_file(path, MAX_BYTES, &text, &n_bytes));
    cvy_status status = CVY_OK;
    for (char *line = strtok_r(text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest), k++) {
        if (k >= edition->n_classes || !cvy_is_utf8(line)) {
            k = -1;
            break;
        }
        char *name = strdup(line);
        if (!name) {
            status = CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for the names of the classes");
            goto out;
        }
        free(head->class_names[k]);
        head->class_names[k] = name;
    }
    if (k != edition->n_classes)
        status = CVY_FAIL(CVY_ERR_DATA, "%s: must hold %lld lines, a class name each", path,
                          (long long)edition->n_classes);
out:
    free(text);
    return status;
}

static cvy_status fill(struct cvy_array_set *set, const struct edition *edition, const char *dir,
                       cvy_split split, struct cvy_pool *pool) {
    char *path;
    if (!*dir)
        return CVY_FAIL(CVY_ERR_USAGE, "data '%s:': name the folder, as in %s:DIR", edition->prefix,
                        edition->prefix);
    CVY_TRY(cvy_pool_printf(pool, &path, "%s/%s", dir, edition->folder));
    if (cvy_is_folder(path))
        dir = path;
    const char *const *files = split == CVY_SPLIT_TRAIN ? edition->train : edition->val;
    for (; *files; files++) {
        CVY_TRY(cvy_pool_printf(pool, &path, "%s/%s", dir, *files));
        CVY_TRY(add_file(set, edition, path));
    }
    CVY_TRY(cvy_pool_printf(pool, &path, "%s/%s", dir, edition->names_file));
    CVY_TRY(read_names(&set->head, edition, path));
    return CVY_OK;
}

static cvy_status open_edition(const struct edition *edition, const char *dir, cvy_split split,
                               struct cvy_dataset **out) {
    struct cvy_array_set *set;
    struct cvy_pool pool = {0};
    CVY_TRY(cvy_array_set_new(3, SIDE, SIDE, &set));
    *out = &set->head;
    set->head.preset = "cifar";
    memcpy(set->head.mean, edition->mean, sizeof edition->mean);
    memcpy(set->head.std, edition->std, sizeof edition->std);
    cvy_status status = fill(set, edition, dir, split, &pool);
    cvy_pool_free(&pool);
    return status;
}

static cvy_status cifar10_open(const char *argument, cvy_split split, const cvy_log_sink *log,
                               struct cvy_dataset **out) {
    (void)log;
    CVY_TRY(open_edition(&cifar10, argument, split, out));
    return CVY_OK;
}

static cvy_status cifar100_open(const char *argument, cvy_split split, const cvy_log_sink *log,
                                struct cvy_dataset **out) {
    (void)log;
    CVY_TRY(open_edition(&cifar100, argument, split, out));
    return CVY_OK;
}

const struct cvy_format cvy_format_cifar10 = {
    .prefix = "cifar10",
    .help = "cifar10:DIR   CIFAR-10, the binary version: data_batch_1.bin to 5, test_batch.bin",
    .open = cifar10_open,
    .free = cvy_array_set_free,
    .pixels = cvy_array_set_read,
    .label = cvy_array_set_label,
};

const struct cvy_format cvy_format_cifar100 = {
    .prefix = "cifar100",
    .help = "cifar100:DIR   CIFAR-100, the binary version, its 100 fine labels: train.bin, test.bin",
    .open = cifar100_open,
    .free = cvy_array_set_free,
    .pixels = cvy_array_set_read,
    .label = cvy_array_set_label,
};

/* PyTorch's .pth, since 1.6: a zip archive with NAME/data.pkl, the pickle, and NAME/data/KEY, the storages. */
#include "graph/state_dict.h"
#include "graph/weights_file.h"
#include "graph/zip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pth {
    char *path;
    struct cvy_zip zip;
    size_t n_prefix; /* of "NAME/" in the entries' names */
    struct cvy_pickle pickle;
    struct cvy_state_dict dict;
};

static bool is_it(const unsigned char *bytes, size_t n_bytes) {
    return n_bytes >= 4 && memcmp(bytes, "PK\3\4", 4) == 0;
}

static void free_it(void *file) {
    struct pth *f = file;
    cvy_state_dict_free(&f->dict);
    cvy_pickle_free(&f->pickle);
    cvy_zip_close(&f->zip);
    free(f->path);
    free(f);
}

static int by_name(const void *a, const void *b) {
    const struct cvy_zip_entry *x = a, *y = b;
    int order = memcmp(x->name, y->name, x->n_name < y->n_name ? x->n_name : y->n_name);
    return order ? order : (x->n_name > y->n_name) - (x->n_name < y->n_name);
}

/* The entry "NAME/" BEFORE KEY, or NULL. */
static const struct cvy_zip_entry *find_entry(const struct pth *f, const char *before, const char *key,
                                              size_t n_key) {
    char name[1024];
    if (f->zip.n == 0 || f->n_prefix + strlen(before) + n_key >= sizeof name)
        return NULL;
    int n = snprintf(name, sizeof name, "%.*s%s%.*s", (int)f->n_prefix, f->zip.entries[0].name, before,
                     (int)n_key, key);
    const struct cvy_zip_entry wanted = {.name = name, .n_name = (size_t)n};
    return bsearch(&wanted, f->zip.entries, f->zip.n, sizeof wanted, by_name);
}

static cvy_status find_storage(const void *context, const char *key, size_t n_key,
                               const unsigned char **bytes, uint64_t *n_bytes) {
    const struct cvy_zip_entry *entry = find_entry(context, "data/", key, n_key);
    if (!entry)
        return CVY_FAIL(CVY_ERR_DATA, "its storage is missing in the archive");
    *bytes = entry->bytes;
    *n_bytes = entry->n_bytes;
    return CVY_OK;
}

static cvy_status read_all(struct pth *f, const void *bytes, size_t n_bytes) {
    CVY_TRY(cvy_zip_open(bytes, n_bytes, &f->zip));
    qsort(f->zip.entries, f->zip.n, sizeof *f->zip.entries, by_name);
    const char *slash = f->zip.n ? memchr(f->zip.entries[0].name, '/', f->zip.entries[0].n_name) : NULL;
    f->n_prefix = slash ? (size_t)(slash - f->zip.entries[0].name) + 1 : 0;
    const struct cvy_zip_entry *data = find_entry(f, "data.pkl", "", 0);
    const struct cvy_zip_entry *order = find_entry(f, "byteorder", "", 0);
    if (!data)
        return CVY_FAIL(CVY_ERR_DATA, "is a zip archive, but none that torch.save wrote: it has no data.pkl");
    if (find_entry(f, "constants.pkl", "", 0))
        return CVY_FAIL(CVY_ERR_DATA, "is a TorchScript program: save the model's state_dict() instead");
    if (order && (order->n_bytes < 6 || memcmp(order->bytes, "little", 6) != 0))
        return CVY_FAIL(CVY_ERR_DATA, "its numbers are big-endian: save it again on an x86 or ARM machine");
    if (data->n_bytes > CVY_PICKLE_MAX_BYTES)
        return CVY_FAIL(CVY_ERR_DATA,
                        "its pickle has %llu bytes, more than %d: save the model's state_dict() alone",
                        (unsigned long long)data->n_bytes, CVY_PICKLE_MAX_BYTES);
    CVY_TRY(cvy_pickle_read(data->bytes, data->n_bytes, cvy_state_dict_names, &f->pickle));
    f->dict.gather_left = n_bytes;
    return cvy_state_dict_read(&f->pickle, find_storage, f, &f->dict);
}

static cvy_status open_it(const void *bytes, size_t n_bytes, const char *path, void **out) {
    struct pth *f;
    CVY_TRY(CVY_ALLOC(f, 1));
    f->path = strdup(path);
    cvy_status status = f->path ? read_all(f, bytes, n_bytes) : CVY_FAIL(CVY_ERR_MEMORY, "out of memory");
    if (status != CVY_OK) {
        free_it(f);
        return cvy_fail_prefix(status, "%s: ", path);
    }
    *out = f;
    return CVY_OK;
}

static size_t count(const void *file) { return ((const struct pth *)file)->dict.n; }
static const char *name_at(const void *file, size_t i) {
    return cvy_state_dict_name(&((const struct pth *)file)->dict, i);
}
static cvy_status find(void *file, const char *name, struct cvy_desc *desc, const void **bytes) {
    struct pth *f = file;
    cvy_status status = cvy_state_dict_find(&f->dict, name, desc, bytes);
    return status == CVY_OK ? CVY_OK : cvy_fail_prefix(status, "%s: ", f->path);
}

const struct cvy_weights_format cvy_weights_format_pth = {.name = "pth",
                                                          .is_it = is_it,
                                                          .open = open_it,
                                                          .count = count,
                                                          .name_at = name_at,
                                                          .find = find,
                                                          .free = free_it};

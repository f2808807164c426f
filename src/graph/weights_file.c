/* See weights_file.h. */
#include "graph/weights_file.h"

#include "base/file.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CVY_WEIGHTS_FORMAT(name) extern const struct cvy_weights_format cvy_weights_format_##name;
#include "graph/weights_formats.def"
#undef CVY_WEIGHTS_FORMAT

static const struct cvy_weights_format *const formats[] = {
#define CVY_WEIGHTS_FORMAT(name) &cvy_weights_format_##name,
#include "graph/weights_formats.def"
#undef CVY_WEIGHTS_FORMAT
};

struct cvy_weights_file {
    const struct cvy_weights_format *format;
    void *inner; /* the format's */
    void *map;   /* NULL: the bytes are somebody else's */
    size_t n_map;
    char *path;
    size_t n_prefix; /* letters that all names begin with, and that none is known by */
};

static const struct cvy_weights_format *find_format(const unsigned char *bytes, size_t n_bytes) {
    size_t i = 0, last = sizeof formats / sizeof formats[0] - 1;
    while (i < last && !formats[i]->is_it(bytes, n_bytes))
        i++;
    return formats[i];
}

/* What PyTorch's wrappers, DistributedDataParallel and compile, put before every name. */
static void find_prefix(struct cvy_weights_file *file) {
    static const char *const prefixes[] = {"module.", "_orig_mod."};
    const size_t n = cvy_weights_file_count(file), n_prefixes = sizeof prefixes / sizeof prefixes[0];
    for (size_t i = 0; n > 0 && i < n_prefixes;) {
        const size_t length = strlen(prefixes[i]);
        /* names are sorted: what the first and the last begin with all do */
        const bool is_it = strncmp(cvy_weights_file_name(file, 0), prefixes[i], length) == 0 &&
                           strncmp(cvy_weights_file_name(file, n - 1), prefixes[i], length) == 0;
        file->n_prefix += is_it ? length : 0;
        i = is_it ? 0 : i + 1; /* one may stand behind the other */
    }
}

cvy_status cvy_weights_file_open_memory(const void *bytes, size_t n_bytes, const char *name,
                                        struct cvy_weights_file **out) {
    struct cvy_weights_file *file;
    CVY_TRY(CVY_ALLOC(file, 1));
    file->format = find_format(bytes, n_bytes);
    file->path = strdup(name);
    cvy_status status = file->path ? file->format->open(bytes, n_bytes, name, &file->inner)
                                   : CVY_FAIL(CVY_ERR_MEMORY, "out of memory: cannot open %s", name);
    if (status != CVY_OK) {
        cvy_weights_file_free(file);
        return status;
    }
    find_prefix(file);
    *out = file;
    return CVY_OK;
}

cvy_status cvy_weights_file_open(const char *path, struct cvy_weights_file **out) {
    void *map;
    size_t n_map;
    CVY_TRY(cvy_map_file(path, &map, &n_map));
    cvy_status status = cvy_weights_file_open_memory(map, n_map, path, out);
    if (status != CVY_OK) {
        munmap(map, n_map);
        return status;
    }
    (*out)->map = map;
    (*out)->n_map = n_map;
    return CVY_OK;
}

void cvy_weights_file_free(struct cvy_weights_file *file) {
    if (!file)
        return;
    if (file->inner)
        file->format->free(file->inner);
    if (file->map)
        munmap(file->map, file->n_map);
    free(file->path);
    free(file);
}

size_t cvy_weights_file_count(const struct cvy_weights_file *file) {
    return file->format->count(file->inner);
}

const char *cvy_weights_file_name(const struct cvy_weights_file *file, size_t i) {
    return file->format->name_at(file->inner, i) + file->n_prefix;
}

/* As the file itself calls it; NULL: it is not there. */
static const char *full_name(const struct cvy_weights_file *file, const char *name) {
    size_t low = 0, high = cvy_weights_file_count(file);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, cvy_weights_file_name(file, middle));
        if (order == 0)
            return file->format->name_at(file->inner, middle);
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

bool cvy_weights_file_has(const struct cvy_weights_file *file, const char *name) {
    return full_name(file, name) != NULL;
}

cvy_status cvy_weights_file_find(struct cvy_weights_file *file, const char *name, struct cvy_desc *desc,
                                 const void **bytes) {
    const char *full = full_name(file, name);
    if (!full)
        return CVY_FAIL(CVY_ERR_DATA, "%s: there is no tensor '%s' in it", file->path, name);
    return file->format->find(file->inner, full, desc, bytes);
}

const char *cvy_weights_file_metadata(const struct cvy_weights_file *file, const char *key) {
    return file->format->metadata ? file->format->metadata(file->inner, key) : NULL;
}

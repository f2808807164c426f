/* Reading safetensors. Invariants of an open file: every tensor's bytes lie within the file; together they
   cover what follows the header exactly once; their number fits type and shape wherever the type is known. */
#include "graph/safetensors.h"

#include "base/file.h"
#include "base/mem.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LENGTH_BYTES = 8, MAX_HEADER_BYTES = 100000000 };

/* All types of the format that have a whole number of bytes. */
static const struct stored_type {
    const char *name;
    uint64_t n_bytes;
    bool is_ours;
    cvy_dtype dtype;
} stored_types[] = {
    {"F32", 4, true, CVY_F32}, {"F64", 8, true, CVY_F64}, {"BF16", 2, true, CVY_BF16},
    {"F16", 2, true, CVY_F16}, {"I32", 4, true, CVY_I32}, {"I64", 8, true, CVY_I64},
    {"U8", 1, true, CVY_U8},   {"BOOL", 1, false, 0},     {"I8", 1, false, 0},
    {"I16", 2, false, 0},      {"U16", 2, false, 0},      {"U32", 4, false, 0},
    {"U64", 8, false, 0},      {"F8_E4M3", 1, false, 0},  {"F8_E5M2", 1, false, 0},
    {"F8_E8M0", 1, false, 0},  {"C64", 8, false, 0},
};

struct entry {
    const char *name, *type_name; /* owned by the header */
    struct cvy_desc desc;         /* when is_ours */
    bool is_ours;                 /* type and rank are ones that Convoy computes with */
    uint64_t begin, end;          /* within `data` */
};

struct cvy_safetensors {
    char *path;
    void *map; /* NULL: the bytes are somebody else's */
    size_t n_map;
    const unsigned char *data; /* behind the header */
    uint64_t n_data;
    json_t *header;
    const json_t *metadata;
    struct entry *entries; /* by name */
    size_t n_entries;
};

static const struct stored_type *find_type(const char *name) {
    for (size_t i = 0; i < sizeof stored_types / sizeof stored_types[0]; i++) {
        if (strcmp(stored_types[i].name, name) == 0)
            return &stored_types[i];
    }
    return NULL;
}

const char *cvy_safetensors_dtype(cvy_dtype dtype) {
    for (size_t i = 0; i < sizeof stored_types / sizeof stored_types[0]; i++) {
        if (stored_types[i].is_ours && stored_types[i].dtype == dtype)
            return stored_types[i].name;
    }
    return NULL;
}

/* ---- one tensor's line of the header ------------------------------------------------------------------- */

static cvy_status read_shape(const struct cvy_safetensors *file, const json_t *shape, struct entry *entry,
                             uint64_t *n_elements) {
    if (!json_is_array(shape))
        return CVY_FAIL(CVY_ERR_DATA, "%s: tensor '%s': its shape is not a list", file->path, entry->name);
    size_t rank = json_array_size(shape);
    uint64_t n = 1; /* zeros count as 1: no part of the product may overflow either */
    bool is_empty = false;
    entry->is_ours = rank <= CVY_MAX_DIMS;
    for (size_t i = 0; i < rank; i++) {
        const json_t *item = json_array_get(shape, i);
        json_int_t dim = json_integer_value(item);
        if (!json_is_integer(item) || dim < 0)
            return CVY_FAIL(CVY_ERR_DATA,
                            "%s: tensor '%s': dimension %zu of its shape is not a number from 0 on",
                            file->path, entry->name, i);
        if (dim > 0 && n > INT64_MAX / (uint64_t)dim)
            return CVY_FAIL(CVY_ERR_DATA, "%s: tensor '%s': its shape overflows", file->path, entry->name);
        n *= dim > 0 ? (uint64_t)dim : 1;
        is_empty = is_empty || dim == 0;
        if (entry->is_ours)
            entry->desc.shape.dim[i] = dim;
    }
    entry->desc.shape.n = entry->is_ours ? (int)rank : 0;
    *n_elements = is_empty ? 0 : n;
    return CVY_OK;
}

static cvy_status read_offsets(const struct cvy_safetensors *file, const json_t *offsets,
                               struct entry *entry) {
    const json_t *first = json_array_get(offsets, 0), *second = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(second))
        return CVY_FAIL(CVY_ERR_DATA, "%s: tensor '%s': its data_offsets are not two numbers", file->path,
                        entry->name);
    json_int_t begin = json_integer_value(first), end = json_integer_value(second);
    if (begin < 0 || end < begin || (uint64_t)end > file->n_data)
        return CVY_FAIL(
            CVY_ERR_DATA,
            "%s: tensor '%s': its bytes %lld to %lld do not lie within the file's %llu bytes of data",
            file->path, entry->name, (long long)begin, (long long)end, (unsigned long long)file->n_data);
    entry->begin = (uint64_t)begin;
    entry->end = (uint64_t)end;
    return CVY_OK;
}

static cvy_status read_entry(const struct cvy_safetensors *file, const char *name, const json_t *line,
                             struct entry *entry) {
    *entry = (struct entry){.name = name, .type_name = json_string_value(json_object_get(line, "dtype"))};
    if (!entry->type_name)
        return CVY_FAIL(CVY_ERR_DATA, "%s: tensor '%s': it has no dtype", file->path, name);
    uint64_t n_elements;
    CVY_TRY(read_shape(file, json_object_get(line, "shape"), entry, &n_elements));
    CVY_TRY(read_offsets(file, json_object_get(line, "data_offsets"), entry));
    const struct stored_type *type = find_type(entry->type_name);
    if (type &&
        (n_elements > INT64_MAX / type->n_bytes || n_elements * type->n_bytes != entry->end - entry->begin))
        return CVY_FAIL(CVY_ERR_DATA, "%s: tensor '%s': %llu elements of %s do not fill its %llu bytes",
                        file->path, name, (unsigned long long)n_elements, type->name,
                        (unsigned long long)(entry->end - entry->begin));
    entry->is_ours = entry->is_ours && type && type->is_ours;
    if (entry->is_ours)
        entry->desc.dtype = type->dtype;
    return CVY_OK;
}

/* ---- the whole header ---------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int by_name(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static cvy_status check_places(struct cvy_safetensors *file) {
    uint64_t next = 0;
    qsort(file->entries, file->n_entries, sizeof *file->entries, by_place);
    for (size_t i = 0; i < file->n_entries; i++) {
        const struct entry *entry = &file->entries[i];
        if (entry->begin != next)
            return CVY_FAIL(CVY_ERR_DATA, "%s: tensor '%s': its bytes begin at %llu, %s at %llu", file->path,
                            entry->name, (unsigned long long)entry->begin,
                            entry->begin < next ? "but those before it end" : "behind a gap that begins",
                            (unsigned long long)next);
        next = entry->end;
    }
    if (next != file->n_data)
        return CVY_FAIL(CVY_ERR_DATA, "%s: %llu bytes at its end belong to no tensor", file->path,
                        (unsigned long long)(file->n_data - next));
    return CVY_OK;
}

static cvy_status read_metadata(struct cvy_safetensors *file, json_t *metadata) {
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return CVY_FAIL(CVY_ERR_DATA, "%s: its __metadata__ is not an object", file->path);
    json_object_foreach(metadata, key, value) {
        if (!json_is_string(value))
            return CVY_FAIL(CVY_ERR_DATA, "%s: the metadata '%s' is not text", file->path, key);
    }
    file->metadata = metadata;
    return CVY_OK;
}

static cvy_status read_header(struct cvy_safetensors *file, const unsigned char *bytes, size_t n_bytes) {
    uint64_t n_header = 0;
    if (n_bytes < LENGTH_BYTES)
        return CVY_FAIL(CVY_ERR_DATA, "%s: not a safetensors file: it has only %zu bytes", file->path,
                        n_bytes);
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        n_header = n_header << 8 | bytes[i];
    if (n_header > n_bytes - LENGTH_BYTES || n_header > MAX_HEADER_BYTES)
        return CVY_FAIL(
            CVY_ERR_DATA,
            "%s: not a whole safetensors file: it says that its header has %llu bytes, but the file has "
            "%zu and a header at most %d",
            file->path, (unsigned long long)n_header, n_bytes, MAX_HEADER_BYTES);
    const char *text = (const char *)bytes + LENGTH_BYTES;
    json_error_t error;
    if (n_header == 0 || text[0] != '{')
        return CVY_FAIL(CVY_ERR_DATA, "%s: not a safetensors file: its header is not JSON", file->path);
    file->header = json_loadb(text, n_header, JSON_REJECT_DUPLICATES, &error);
    if (!file->header)
        return CVY_FAIL(CVY_ERR_DATA, "%s: its header is not right at byte %d: %s", file->path,
                        LENGTH_BYTES + error.position, error.text);
    file->data = bytes + LENGTH_BYTES + n_header;
    file->n_data = n_bytes - LENGTH_BYTES - n_header;

    const char *name;
    json_t *line;
    CVY_TRY(CVY_ALLOC(file->entries, json_object_size(file->header)));
    json_object_foreach(file->header, name, line) {
        if (strcmp(name, "__metadata__") == 0)
            CVY_TRY(read_metadata(file, line));
        else
            CVY_TRY(read_entry(file, name, line, &file->entries[file->n_entries++]));
    }
    CVY_TRY(check_places(file));
    qsort(file->entries, file->n_entries, sizeof *file->entries, by_name);
    return CVY_OK;
}

/* ---- opening ------------------------------------------------------------------------------------------- */

cvy_status cvy_safetensors_open_memory(const void *bytes, size_t n_bytes, const char *name,
                                       struct cvy_safetensors **out) {
    struct cvy_safetensors *file;
    CVY_TRY(CVY_ALLOC(file, 1));
    file->path = strdup(name);
    cvy_status status = file->path ? read_header(file, bytes, n_bytes)
                                   : CVY_FAIL(CVY_ERR_MEMORY, "out of memory: cannot open %s", name);
    if (status != CVY_OK) {
        cvy_safetensors_free(file);
        return status;
    }
    *out = file;
    return CVY_OK;
}

cvy_status cvy_safetensors_open(const char *path, struct cvy_safetensors **out) {
    void *map;
    size_t n_map;
    CVY_TRY(cvy_map_file(path, &map, &n_map));
    cvy_status status = cvy_safetensors_open_memory(map, n_map, path, out);
    if (status != CVY_OK) {
        munmap(map, n_map);
        return status;
    }
    (*out)->map = map;
    (*out)->n_map = n_map;
    return CVY_OK;
}

void cvy_safetensors_free(struct cvy_safetensors *file) {
    if (!file)
        return;
    json_decref(file->header);
    if (file->map)
        munmap(file->map, file->n_map);
    free(file->entries);
    free(file->path);
    free(file);
}

/* ---- looking into it ----------------------------------------------------------------------------------- */

size_t cvy_safetensors_count(const struct cvy_safetensors *file) { return file->n_entries; }

const char *cvy_safetensors_name(const struct cvy_safetensors *file, size_t i) {
    return file->entries[i].name;
}

static const struct entry *find_entry(const struct cvy_safetensors *file, const char *name) {
    const struct entry key = {.name = name};
    return bsearch(&key, file->entries, file->n_entries, sizeof key, by_name);
}

bool cvy_safetensors_has(const struct cvy_safetensors *file, const char *name) {
    return find_entry(file, name) != NULL;
}

cvy_status cvy_safetensors_find(const struct cvy_safetensors *file, const char *name, struct cvy_desc *desc,
                                const void **bytes) {
    const struct entry *entry = find_entry(file, name);
    if (!entry)
        return CVY_FAIL(CVY_ERR_DATA, "%s: there is no tensor '%s' in it", file->path, name);
    const struct stored_type *type = find_type(entry->type_name);
    if (!type || !type->is_ours)
        return CVY_FAIL(CVY_ERR_DATA, "%s: tensor '%s': type %s cannot be read: convert it to F32, say",
                        file->path, name, entry->type_name);
    if (!entry->is_ours)
        return CVY_FAIL(CVY_ERR_DATA, "%s: tensor '%s': more than %d dimensions", file->path, name,
                        CVY_MAX_DIMS);
    *desc = entry->desc;
    *bytes = file->data + entry->begin;
    return CVY_OK;
}

const char *cvy_safetensors_metadata(const struct cvy_safetensors *file, const char *key) {
    return json_string_value(json_object_get(file->metadata, key));
}

/* Sets of samples in arrays. Invariant: each array's samples lie within one of the set's files. */
#include "data/arrays.h"

#include "base/file.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <zlib.h>

static struct cvy_array_set *set_of(const struct cvy_dataset *dataset) {
    return (struct cvy_array_set *)dataset;
}

cvy_status cvy_array_set_new(int64_t channels, int64_t height, int64_t width, struct cvy_array_set **out) {
    CVY_TRY(CVY_ALLOC(*out, 1));
    (*out)->head = (struct cvy_dataset){.channels = channels,
                                        .height = height,
                                        .width = width,
                                        .dtype = CVY_U8,
                                        .order = CVY_NHWC,
                                        .preset = "none"};
    return CVY_OK;
}

void cvy_array_set_free(struct cvy_dataset *dataset) {
    struct cvy_array_set *set = set_of(dataset);
    for (int k = 0; k < set->n_files; k++) {
        if (set->files[k].is_mapped)
            munmap(set->files[k].data, set->files[k].n);
        else
            free(set->files[k].data);
    }
    free(set);
}

/* The content of a gzip file that is in memory, in a buffer that grows up to max_bytes. */
static cvy_status inflate_all(z_stream *stream, const char *path, size_t max_bytes, struct cvy_bytes *out) {
    size_t capacity = 0;
    for (int code = Z_OK; code != Z_STREAM_END;) {
        if (out->n == capacity) {
            if (capacity == max_bytes)
                return CVY_FAIL(CVY_ERR_DATA, "%s: inflates to more than %zu bytes", path, max_bytes);
            capacity = capacity > max_bytes / 2 ? max_bytes : capacity ? 2 * capacity : (size_t)1 << 20;
            void *grown = realloc(out->data, capacity);
            if (!grown)
                return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for the content of %s", path);
            out->data = grown;
        }
        size_t room = capacity - out->n < UINT32_MAX ? capacity - out->n : UINT32_MAX;
        stream->next_out = (Bytef *)out->data + out->n;
        stream->avail_out = (uInt)room;
        code = inflate(stream, Z_NO_FLUSH);
        out->n += room - stream->avail_out;
        if (code == Z_BUF_ERROR || (code == Z_OK && stream->avail_in == 0 && stream->avail_out))
            return CVY_FAIL(CVY_ERR_DATA, "%s: is cut short: it ends within its compressed content", path);
        if (code != Z_OK && code != Z_STREAM_END)
            return CVY_FAIL(CVY_ERR_DATA, "%s: is damaged: %s", path,
                            stream->msg ? stream->msg : "cannot be inflated");
    }
    return CVY_OK;
}

static cvy_status gunzip(const char *path, size_t max_bytes, const struct cvy_bytes *from,
                         struct cvy_bytes *out) {
    enum { GZIP_HEADER = 16 + MAX_WBITS };
    z_stream stream = {.next_in = from->data, .avail_in = (uInt)from->n};
    *out = (struct cvy_bytes){0};
    if (from->n > UINT32_MAX)
        return CVY_FAIL(CVY_ERR_DATA, "%s: is larger than 4 GiB: unpack it", path);
    if (inflateInit2(&stream, GZIP_HEADER) != Z_OK)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: %s cannot be inflated", path);
    cvy_status status = inflate_all(&stream, path, max_bytes, out);
    inflateEnd(&stream);
    if (status != CVY_OK)
        free(out->data);
    return status;
}

cvy_status cvy_array_set_load(struct cvy_array_set *set, const char *path, size_t max_bytes,
                              const uint8_t **bytes, size_t *n_bytes) {
    struct cvy_bytes file = {.is_mapped = true};
    assert(set->n_files < CVY_MAX_ARRAYS);
    CVY_TRY(cvy_map_file(path, &file.data, &file.n));
    if (file.n > 2 && memcmp(file.data, "\x1f\x8b", 2) == 0) {
        struct cvy_bytes content;
        cvy_status status = gunzip(path, max_bytes, &file, &content);
        munmap(file.data, file.n);
        CVY_TRY(status);
        file = content;
    }
    set->files[set->n_files++] = file;
    *bytes = file.data;
    *n_bytes = file.n;
    return CVY_OK;
}

void cvy_array_set_add(struct cvy_array_set *set, const struct cvy_array *array) {
    assert(set->n_arrays < CVY_MAX_ARRAYS);
    set->arrays[set->n_arrays++] = *array;
    set->head.n += array->n;
}

/* The array of sample *i, which becomes its place there. */
static const struct cvy_array *find(const struct cvy_array_set *set, int64_t *i) {
    const struct cvy_array *array = set->arrays;
    while (*i >= array->n)
        *i -= array++->n;
    return array;
}

cvy_status cvy_array_set_read(const struct cvy_dataset *dataset, int64_t i, struct cvy_image *image) {
    const struct cvy_array *array = find(set_of(dataset), &i);
    const int64_t n = dataset->height * dataset->width, channels = dataset->channels;
    CVY_TRY(cvy_image_reshape(image, channels, dataset->height, dataset->width, CVY_U8, CVY_NHWC));
    const uint8_t *from = array->images + (size_t)i * array->image_stride;
    uint8_t *to = image->pixels;
    for (int64_t k = 0; k < n; k++) {
        for (int64_t c = 0; c < channels; c++)
            *to++ = from[c * n + k];
    }
    return CVY_OK;
}

cvy_status cvy_array_set_label(const struct cvy_dataset *dataset, int64_t i, int64_t *out) {
    const struct cvy_array *array = find(set_of(dataset), &i);
    *out = array->labels[(size_t)i * array->label_stride];
    return CVY_OK;
}

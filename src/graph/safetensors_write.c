/* Writing safetensors: the header is made whole in memory, then everything goes through one writer, which
   leaves a whole file or none. */
#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "graph/safetensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* The given order, longer elements first. */
static cvy_status make_order(const struct cvy_safetensor *tensors, size_t n,
                             const struct cvy_safetensor ***out) {
    const struct cvy_safetensor **order;
    size_t n_placed = 0;
    CVY_TRY(CVY_ALLOC(order, n));
    for (size_t n_bytes = 8; n_bytes > 0; n_bytes--) {
        for (size_t i = 0; i < n; i++) {
            if (cvy_dtype_size(tensors[i].desc.dtype) == n_bytes)
                order[n_placed++] = &tensors[i];
        }
    }
    *out = order;
    return CVY_OK;
}

static cvy_status add_metadata(json_t *header, const struct cvy_safetensors_pair *metadata, size_t n) {
    json_t *object = json_object();
    if (json_object_set_new(header, "__metadata__", object) != 0)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for the metadata");
    for (size_t i = 0; i < n; i++) {
        if (!cvy_is_utf8(metadata[i].key) || !cvy_is_utf8(metadata[i].value))
            return CVY_FAIL(CVY_ERR_USAGE, "the metadata '%s' is not UTF-8", metadata[i].key);
        if (json_object_set_new(object, metadata[i].key, json_string(metadata[i].value)) != 0)
            return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for the metadata");
    }
    return CVY_OK;
}

static cvy_status add_tensor(json_t *header, const struct cvy_safetensor *tensor, uint64_t *offset) {
    CVY_TRY(cvy_desc_check(&tensor->desc));
    uint64_t begin = *offset, end = begin + cvy_desc_bytes(&tensor->desc);
    if (strcmp(tensor->name, "__metadata__") == 0 || json_object_get(header, tensor->name))
        return CVY_FAIL(CVY_ERR_USAGE, "the name '%s' is taken", tensor->name);
    if (!cvy_is_utf8(tensor->name))
        return CVY_FAIL(CVY_ERR_USAGE, "the name '%s' is not UTF-8", tensor->name);
    json_t *shape = json_array();
    for (int i = 0; i < tensor->desc.shape.n; i++)
        json_array_append_new(shape, json_integer(tensor->desc.shape.dim[i]));
    json_t *line = json_pack("{s:s, s:o, s:[I, I]}", "dtype", cvy_safetensors_dtype(tensor->desc.dtype),
                             "shape", shape, "data_offsets", (json_int_t)begin, (json_int_t)end);
    if (json_object_set_new(header, tensor->name, line) != 0)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for the header");
    *offset = end;
    return CVY_OK;
}

/* The 8 bytes of length and the JSON, padded with spaces to a multiple of 8. The caller frees *out. */
static cvy_status make_header(const struct cvy_safetensor *const *order, size_t n,
                              const struct cvy_safetensors_pair *metadata, size_t n_metadata,
                              unsigned char **out, size_t *n_bytes) {
    cvy_status status = CVY_OK;
    char *text = NULL;
    uint64_t offset = 0;
    json_t *header = json_object();
    if (n_metadata > 0)
        CVY_TRY_OUT(add_metadata(header, metadata, n_metadata));
    for (size_t i = 0; i < n; i++)
        CVY_TRY_OUT(add_tensor(header, order[i], &offset));
    text = json_dumps(header, JSON_COMPACT);
    if (!text) {
        status = CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for the header");
        goto out;
    }
    size_t n_text = strlen(text), n_padded = cvy_align_up(n_text, 8);
    CVY_TRY_OUT(cvy_alloc_items(8 + n_padded, 1, (void **)out));
    for (int i = 0; i < 8; i++)
        (*out)[i] = (unsigned char)((uint64_t)n_padded >> (8 * i));
    memcpy(*out + 8, text, n_text);
    memset(*out + 8 + n_text, ' ', n_padded - n_text);
    *n_bytes = 8 + n_padded;
out:
    free(text);
    json_decref(header);
    return status;
}

static cvy_status write_all(const char *path, const unsigned char *header, size_t n_header,
                            const struct cvy_safetensor *const *order, size_t n) {
    struct cvy_writer writer;
    CVY_TRY(cvy_writer_begin(&writer, path));
    CVY_TRY(cvy_writer_append(&writer, header, n_header));
    for (size_t i = 0; i < n; i++)
        CVY_TRY(cvy_writer_append(&writer, order[i]->bytes, cvy_desc_bytes(&order[i]->desc)));
    CVY_TRY(cvy_writer_commit(&writer));
    return CVY_OK;
}

cvy_status cvy_safetensors_write(const char *path, const struct cvy_safetensor *tensors, size_t n,
                                 const struct cvy_safetensors_pair *metadata, size_t n_metadata) {
    cvy_status status;
    const struct cvy_safetensor **order = NULL;
    unsigned char *header = NULL;
    size_t n_header;
    CVY_TRY_OUT(make_order(tensors, n, &order));
    status = make_header(order, n, metadata, n_metadata, &header, &n_header);
    if (status != CVY_OK) {
        cvy_fail_prefix(status, "%s: ", path);
        goto out;
    }
    CVY_TRY_OUT(write_all(path, header, n_header, order, n));
out:
    free(header);
    free(order);
    return status;
}

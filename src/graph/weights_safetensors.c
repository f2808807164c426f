/* Safetensors as a format of weights. */
#include "graph/safetensors.h"
#include "graph/weights_file.h"

static bool is_it(const unsigned char *bytes, size_t n_bytes) { return n_bytes > 8 && bytes[8] == '{'; }

static cvy_status open_it(const void *bytes, size_t n_bytes, const char *path, void **out) {
    struct cvy_safetensors *file;
    cvy_status status = cvy_safetensors_open_memory(bytes, n_bytes, path, &file);
    if (status == CVY_ERR_DATA && !is_it(bytes, n_bytes)) /* it came here because no format knew it */
        return CVY_FAIL(CVY_ERR_DATA, "%s: is neither a safetensors file nor PyTorch's .pth", path);
    CVY_TRY(status);
    *out = file;
    return CVY_OK;
}

static size_t count(const void *file) { return cvy_safetensors_count(file); }
static const char *name_at(const void *file, size_t i) { return cvy_safetensors_name(file, i); }
static cvy_status find(void *file, const char *name, struct cvy_desc *desc, const void **bytes) {
    return cvy_safetensors_find(file, name, desc, bytes);
}
static const char *metadata(const void *file, const char *key) { return cvy_safetensors_metadata(file, key); }
static void free_it(void *file) { cvy_safetensors_free(file); }

const struct cvy_weights_format cvy_weights_format_safetensors = {.name = "safetensors",
                                                                  .is_it = is_it,
                                                                  .open = open_it,
                                                                  .count = count,
                                                                  .name_at = name_at,
                                                                  .find = find,
                                                                  .metadata = metadata,
                                                                  .free = free_it};

/* Any bytes as a tar archive: what its index says lies within it, and reads back as the same index. */
#include "data/tar_index.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

struct memory {
    const uint8_t *bytes;
    size_t n;
};

static cvy_status read_memory(void *context, int64_t offset, void *into, size_t n_bytes) {
    const struct memory *memory = context;
    assert(offset >= 0 && (size_t)offset <= memory->n && n_bytes <= memory->n - (size_t)offset);
    if (n_bytes)
        memcpy(into, memory->bytes + offset, n_bytes);
    return CVY_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    struct memory memory = {bytes, n_bytes};
    const struct cvy_tar_source source = {read_memory, &memory, (int64_t)n_bytes};
    struct cvy_tar_index index = {0}, again;
    if (cvy_tar_index_scan(&source, 7, &index) != CVY_OK)
        return 0;
    assert(index.samples && cvy_tar_index_parse(index.bytes, index.n_bytes, &again));
    assert(again.n == index.n && again.mtime == 7);
    cvy_tar_index_free(&index);
    return 0;
}

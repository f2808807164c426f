/* Any bytes as a file of weights: opened or refused, and every byte of every tensor is readable. */
#include "graph/weights_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    struct cvy_weights_file *file;
    if (cvy_weights_file_open_memory(bytes, n_bytes, "fuzz", &file) != CVY_OK)
        return 0;
    volatile uint8_t sink = 0;
    for (size_t i = 0; i < cvy_weights_file_count(file); i++) {
        struct cvy_desc desc;
        const void *data;
        if (cvy_weights_file_find(file, cvy_weights_file_name(file, i), &desc, &data) != CVY_OK)
            continue;
        for (size_t k = 0; k < cvy_desc_bytes(&desc); k++)
            sink = (uint8_t)(sink + ((const uint8_t *)data)[k]);
    }
    cvy_weights_file_metadata(file, "format");
    cvy_weights_file_free(file);
    return 0;
}

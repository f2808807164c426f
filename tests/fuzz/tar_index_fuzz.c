/* Any bytes as the kept index of a shard: what is accepted points into itself and into the shard. The check sum before
   it, which a fuzzer would never meet, is left out. */
#include "data/cache.h"
#include "data/tar_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    struct cvy_tar_index index;
    const char *content;
    size_t n_content, n_texts = 0;
    char *copy = malloc(n_bytes + !n_bytes); /* aligned */
    if (!copy)
        return 0;
    if (n_bytes)
        memcpy(copy, bytes, n_bytes);
    (void)cvy_cache_parse(copy, n_bytes, "CVYTAR3\n", &content, &n_content);
    if (cvy_tar_index_parse(copy, n_bytes, &index)) {
        for (size_t i = 0; i < index.n; i++) {
            n_texts +=
                strlen(index.text + index.samples[i].name) + strlen(index.text + index.samples[i].label);
            assert(index.samples[i].offset + index.samples[i].size <= index.size);
        }
        assert(strlen(index.classes) < n_bytes && n_texts <= 2 * n_bytes * (index.n + 1));
    }
    free(copy);
    return 0;
}

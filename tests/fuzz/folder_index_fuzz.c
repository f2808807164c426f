/* Any bytes as the kept index of a folder: what is accepted has as many pieces as it says, all within itself. The check
   sum before it, which a fuzzer would never meet, is left out. */
#include "data/folder_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    struct cvy_folder_index index;
    char *copy = malloc(n_bytes + !n_bytes); /* aligned */
    if (!copy)
        return 0;
    if (n_bytes)
        memcpy(copy, bytes, n_bytes);
    if (cvy_folder_index_parse(copy, n_bytes, &index)) {
        const char *at = index.text;
        for (size_t k = 0; k < index.n; k++) {
            for (uint64_t i = 0; i <= index.folders[k].n_files; i++)
                at += strlen(at) + 1;
        }
        assert(at == copy + n_bytes);
    }
    free(copy);
    return 0;
}

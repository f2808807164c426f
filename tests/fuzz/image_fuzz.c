/* Any bytes as an image file: decoded or refused. What decodes has the promised shape and only pixels that are
 * written (MemorySanitizer and valgrind see the reads), and can be resized. */
#include "data/decode.h"
#include "data/resize.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

enum { MAX_PIXELS = 1 << 18 /* keeps one input quick */ };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    struct cvy_image image = {0}, resized = {0};
    struct cvy_resizer resizer = {0};
    if (cvy_decode(bytes, n_bytes, MAX_PIXELS, &image) == CVY_OK) {
        size_t n = (size_t)(image.channels * image.height * image.width);
        if (image.channels != 3 || n > 3 * MAX_PIXELS || n > image.capacity)
            abort();
        if (cvy_resize(&resizer, &image, 7, 5, &resized) != CVY_OK)
            abort();
        for (int p = 0; p < 3 * 7 * 5; p++) {
            if (((const uint8_t *)resized.pixels)[p] == n_bytes % 256 + 256)
                abort();
        }
    }
    cvy_resizer_free(&resizer);
    cvy_image_free(&resized);
    cvy_image_free(&image);
    return 0;
}

/* PNG files, and what is no image. See image_subject.h. */
#include "image_subject.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    try_image(bytes, n_bytes);
    return 0;
}

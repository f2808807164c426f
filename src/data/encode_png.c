/* See encode_png.h. */
#include "data/encode_png.h"

#include <spng.h>

cvy_status cvy_encode_png(const struct cvy_image *image, void **out, size_t *n_bytes) {
    spng_ctx *png = spng_ctx_new(SPNG_CTX_ENCODER);
    if (!png)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for a PNG encoder");
    struct spng_ihdr header = {.width = (uint32_t)image->width,
                               .height = (uint32_t)image->height,
                               .bit_depth = 8,
                               .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
    const size_t n_pixel_bytes = (size_t)(3 * image->height * image->width);
    int error = spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
    if (!error)
        error = spng_set_ihdr(png, &header);
    if (!error)
        error = spng_encode_image(png, image->pixels, n_pixel_bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    *out = error ? NULL : spng_get_png_buffer(png, n_bytes, &error);
    spng_ctx_free(png);
    return *out && !error ? CVY_OK : CVY_FAIL(CVY_ERR_FAILED, "libspng: %s", spng_strerror(error));
}

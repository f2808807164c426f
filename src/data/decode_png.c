/* PNG by libspng: palette, grey and 16-bit images become RGB of 8 bits, transparency is dropped without
   blending. 16-bit values keep their high byte. */
#include "data/decode.h"

#include <spng.h>

enum { MAX_CHUNK_BYTES = 1 << 29, MAX_CACHE_BYTES = 1 << 25 }; /* the cache holds texts and colour profiles */

static cvy_status read_image(spng_ctx *png, const void *bytes, size_t n_bytes, int64_t max_pixels,
                             struct cvy_image *image) {
    struct spng_ihdr header;
    spng_set_chunk_limits(png, MAX_CHUNK_BYTES, MAX_CACHE_BYTES);
    int error = spng_set_png_buffer(png, bytes, n_bytes);
    if (!error)
        error = spng_get_ihdr(png, &header);
    if (error)
        return CVY_FAIL(CVY_ERR_DATA, "is not a whole PNG image: %s", spng_strerror(error));
    CVY_TRY(cvy_decode_reserve(header.width, header.height, max_pixels, image));
    size_t n_pixel_bytes = (size_t)image->width * (size_t)image->height * 3;
    error = spng_decode_image(png, image->pixels, n_pixel_bytes, SPNG_FMT_RGB8, 0);
    if (error)
        return CVY_FAIL(CVY_ERR_DATA, "is not a whole PNG image: %s", spng_strerror(error));
    return CVY_OK;
}

cvy_status cvy_decode_png(const void *bytes, size_t n_bytes, int64_t max_pixels, struct cvy_image *image) {
    spng_ctx *png = spng_ctx_new(0);
    if (!png)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for a PNG decoder");
    cvy_status status = read_image(png, bytes, n_bytes, max_pixels, image);
    spng_ctx_free(png);
    return status;
}

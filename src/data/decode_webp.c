/* WebP by libwebp, lossy and lossless; transparency is dropped without blending. Animations are refused: which of their
   pictures is meant is not ours to guess. */
#include "data/decode.h"

#include <webp/decode.h>

static const char *reason_of(VP8StatusCode code) {
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return "out of memory";
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return "it ends too early";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return "it uses a feature that is not supported";
    default:
        return "its content is damaged";
    }
}

static cvy_status fail(VP8StatusCode code) {
    return CVY_FAIL(CVY_ERR_DATA, "is not a whole WebP image: %s", reason_of(code));
}

cvy_status cvy_decode_webp(const void *bytes, size_t n_bytes, int64_t max_pixels, struct cvy_image *image) {
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "libwebp is another version than the one Convoy was built with");
    VP8StatusCode code = WebPGetFeatures(bytes, n_bytes, &config.input);
    if (code != VP8_STATUS_OK)
        return fail(code);
    if (config.input.has_animation)
        return CVY_FAIL(CVY_ERR_DATA, "is an animated WebP image: save one picture of it");
    CVY_TRY(cvy_decode_reserve(config.input.width, config.input.height, max_pixels, image));
    const size_t row = (size_t)image->width * 3;
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = image->pixels;
    config.output.u.RGBA.stride = (int)row;
    config.output.u.RGBA.size = row * (size_t)image->height;
    code = WebPDecode(bytes, n_bytes, &config);
    WebPFreeDecBuffer(&config.output);
    return code == VP8_STATUS_OK ? CVY_OK : fail(code);
}

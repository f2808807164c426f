/* WebP by libwebp, lossy and lossless; transparency is dropped without blending. Animations are refused: which of their
   pictures is meant is not ours to guess. Of a part only its rows and those above are decoded; a file that is cut off
   is found by its length all the same, libwebp compares it first. */
#include "data/decode.h"
#include "data/exif.h"

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

static cvy_status read_header(const void *bytes, size_t n_bytes, int64_t max_pixels,
                              WebPDecoderConfig *config) {
    if (!WebPInitDecoderConfig(config))
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "libwebp is another version than the one Convoy was built with");
    VP8StatusCode code = WebPGetFeatures(bytes, n_bytes, &config->input);
    if (code != VP8_STATUS_OK)
        return fail(code);
    if (config->input.has_animation)
        return CVY_FAIL(CVY_ERR_DATA, "is an animated WebP image: save one picture of it");
    CVY_TRY(cvy_decode_check(config->input.width, config->input.height, max_pixels));
    return CVY_OK;
}

/* Gives the image its size, and decodes into it. */
static cvy_status read_pixels(const void *bytes, size_t n_bytes, int64_t height, int64_t width,
                              WebPDecoderConfig *config, struct cvy_image *image) {
    CVY_TRY(cvy_image_reshape(image, 3, height, width, CVY_U8, CVY_NHWC));
    const size_t row = (size_t)width * 3;
    config->output.colorspace = MODE_RGB;
    config->output.is_external_memory = 1;
    config->output.u.RGBA.rgba = image->pixels;
    config->output.u.RGBA.stride = (int)row;
    config->output.u.RGBA.size = row * (size_t)height;
    VP8StatusCode code = WebPDecode(bytes, n_bytes, config);
    WebPFreeDecBuffer(&config->output);
    return code == VP8_STATUS_OK ? CVY_OK : fail(code);
}

cvy_status cvy_decode_webp(const void *bytes, size_t n_bytes, int64_t max_pixels, struct cvy_image *image) {
    WebPDecoderConfig config;
    CVY_TRY(read_header(bytes, n_bytes, max_pixels, &config));
    CVY_TRY(read_pixels(bytes, n_bytes, config.input.height, config.input.width, &config, image));
    return CVY_OK;
}

/* From an even number on, one sample of colours and more before the first; the same behind the last. */
static void widen(int64_t first, int64_t n, int64_t whole, int64_t *from, int64_t *count) {
    *from = first > 2 ? (first - 2) & ~INT64_C(1) : 0;
    *count = (first + n + 2 < whole ? first + n + 2 : whole) - *from;
}

cvy_status cvy_decode_webp_part(const void *bytes, size_t n_bytes, int64_t max_pixels, int orientation,
                                const struct cvy_image_part *part, struct cvy_image *image) {
    WebPDecoderConfig config;
    CVY_TRY(read_header(bytes, n_bytes, max_pixels, &config));
    const int64_t height = config.input.height, width = config.input.width;
    const bool is_swapped = cvy_orient_swaps(orientation);
    const struct cvy_box chosen =
        part->choose(part->context, is_swapped ? width : height, is_swapped ? height : width);
    struct cvy_box box = cvy_orient_back(&chosen, orientation, height, width), wide;
    /* Upsampling of colours lacks its neighbours at the edge of what libwebp crops, which begins at even numbers. */
    widen(box.top, box.height, height, &wide.top, &wide.height);
    widen(box.left, box.width, width, &wide.left, &wide.width);
    config.options.use_cropping = 1;
    config.options.crop_top = (int)wide.top;
    config.options.crop_left = (int)wide.left;
    config.options.crop_height = (int)wide.height;
    config.options.crop_width = (int)wide.width;
    CVY_TRY(read_pixels(bytes, n_bytes, wide.height, wide.width, &config, image));
    box.top -= wide.top;
    box.left -= wide.left;
    cvy_image_crop(image, &box);
    CVY_TRY(cvy_orient(image, orientation));
    return CVY_OK;
}

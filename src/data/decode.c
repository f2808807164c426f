/* Which decoder a file needs: its first bytes say so, its name does not. */
#include "data/decode.h"

#include "base/file.h"
#include "data/exif.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct codec {
    const char *name;
    const char *magic;
    size_t offset, n_magic;
    cvy_status (*decode)(const void *, size_t, int64_t, struct cvy_image *); /* NULL: known, not supported */
    cvy_status (*decode_part)(const void *, size_t, int64_t, int, const struct cvy_image_part *,
                              struct cvy_image *); /* NULL: the whole is decoded, too */
};

static const struct codec codecs[] = {
    {"JPEG", "\xFF\xD8\xFF", 0, 3, cvy_decode_jpeg, cvy_decode_jpeg_part},
    {"PNG", "\x89PNG\r\n\x1A\n", 0, 8, cvy_decode_png, NULL},
    {"GIF", "GIF8", 0, 4, NULL, NULL},
    {"WebP", "WEBP", 8, 4, cvy_decode_webp, cvy_decode_webp_part},
    {"BMP", "BM", 0, 2, NULL, NULL},
    {"TIFF", "II*\0", 0, 4, NULL, NULL},
    {"TIFF", "MM\0*", 0, 4, NULL, NULL},
    {"HEIF or AVIF", "ftyp", 4, 4, NULL, NULL},
};

static cvy_status fail_unknown(const unsigned char *bytes, size_t n_bytes) {
    enum { N_SHOWN = 16 };
    char shown[3 * N_SHOWN + 1] = "";
    size_t n = n_bytes < N_SHOWN ? n_bytes : N_SHOWN;
    bool is_text = true;
    for (size_t i = 0; i < n; i++)
        is_text = is_text && (isprint(bytes[i]) || isspace(bytes[i]));
    if (n == 0)
        return CVY_FAIL(CVY_ERR_DATA, "the file is empty");
    for (size_t i = 0; i < n; i++) {
        if (is_text)
            snprintf(shown + i, sizeof shown - i, "%c", isspace(bytes[i]) ? ' ' : bytes[i]);
        else
            snprintf(shown + 3 * i, sizeof shown - 3 * i, "%02X ", bytes[i]);
    }
    if (is_text)
        return CVY_FAIL(CVY_ERR_DATA, "is text, not a JPEG, PNG or WebP image (it begins with \"%s\")",
                        shown);
    return CVY_FAIL(CVY_ERR_DATA, "is not a JPEG, PNG or WebP image (it begins with the bytes %.*s)",
                    (int)(3 * n - 1), shown);
}

static cvy_status decode_by(const struct codec *codec, const void *bytes, size_t n_bytes, int64_t max_pixels,
                            bool as_stored, const struct cvy_image_part *part, struct cvy_image *image) {
    int orientation = as_stored ? 1 : cvy_exif_orientation(bytes, n_bytes);
    if (part && codec->decode_part)
        return codec->decode_part(bytes, n_bytes, max_pixels, orientation, part, image);
    CVY_TRY(codec->decode(bytes, n_bytes, max_pixels, image));
    CVY_TRY(cvy_orient(image, orientation));
    if (part)
        cvy_image_take(image, part);
    return CVY_OK;
}

cvy_status cvy_decode(const void *bytes, size_t n_bytes, int64_t max_pixels, bool as_stored,
                      const struct cvy_image_part *part, struct cvy_image *image) {
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        const struct codec *codec = &codecs[i];
        if (n_bytes < codec->offset + codec->n_magic ||
            memcmp((const char *)bytes + codec->offset, codec->magic, codec->n_magic) != 0)
            continue;
        if (!codec->decode)
            return CVY_FAIL(CVY_ERR_DATA, "is a %s image, convert it to JPEG, PNG or WebP", codec->name);
        return decode_by(codec, bytes, n_bytes, max_pixels, as_stored, part, image);
    }
    return fail_unknown(bytes, n_bytes);
}

cvy_status cvy_decode_file(const char *path, bool as_stored, const struct cvy_image_part *part,
                           struct cvy_image *image) {
    char *bytes;
    size_t n_bytes;
    CVY_TRY(cvy_read_file(path, CVY_MAX_FILE_BYTES, &bytes, &n_bytes));
    cvy_status status = cvy_decode(bytes, n_bytes, CVY_MAX_PIXELS, as_stored, part, image);
    free(bytes);
    return status == CVY_OK ? CVY_OK : cvy_fail_prefix(status, "%s: ", path);
}

cvy_status cvy_decode_check(int64_t width, int64_t height, int64_t max_pixels) {
    if (width >= 1 && height >= 1 && width <= max_pixels / height)
        return CVY_OK;
    return CVY_FAIL(CVY_ERR_DATA, "its header says %lldx%lld pixels, between 1 and %lld are allowed",
                    (long long)width, (long long)height, (long long)max_pixels);
}

cvy_status cvy_decode_reserve(int64_t width, int64_t height, int64_t max_pixels, struct cvy_image *image) {
    CVY_TRY(cvy_decode_check(width, height, max_pixels));
    CVY_TRY(cvy_image_reshape(image, 3, height, width, CVY_U8, CVY_NHWC));
    return CVY_OK;
}

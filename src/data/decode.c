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
};

static const struct codec codecs[] = {
    {"JPEG", "\xFF\xD8\xFF", 0, 3, cvy_decode_jpeg},
    {"PNG", "\x89PNG\r\n\x1A\n", 0, 8, cvy_decode_png},
    {"GIF", "GIF8", 0, 4, NULL},
    {"WebP", "WEBP", 8, 4, cvy_decode_webp},
    {"BMP", "BM", 0, 2, NULL},
    {"TIFF", "II*\0", 0, 4, NULL},
    {"TIFF", "MM\0*", 0, 4, NULL},
    {"HEIF or AVIF", "ftyp", 4, 4, NULL},
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

cvy_status cvy_decode(const void *bytes, size_t n_bytes, int64_t max_pixels, struct cvy_image *image) {
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        const struct codec *codec = &codecs[i];
        if (n_bytes < codec->offset + codec->n_magic ||
            memcmp((const char *)bytes + codec->offset, codec->magic, codec->n_magic) != 0)
            continue;
        if (!codec->decode)
            return CVY_FAIL(CVY_ERR_DATA, "is a %s image, convert it to JPEG, PNG or WebP", codec->name);
        CVY_TRY(codec->decode(bytes, n_bytes, max_pixels, image));
        CVY_TRY(cvy_orient(image, cvy_exif_orientation(bytes, n_bytes)));
        return CVY_OK;
    }
    return fail_unknown(bytes, n_bytes);
}

cvy_status cvy_decode_file(const char *path, struct cvy_image *image) {
    char *bytes;
    size_t n_bytes;
    CVY_TRY(cvy_read_file(path, CVY_MAX_FILE_BYTES, &bytes, &n_bytes));
    cvy_status status = cvy_decode(bytes, n_bytes, CVY_MAX_PIXELS, image);
    free(bytes);
    return status == CVY_OK ? CVY_OK : cvy_fail_prefix(status, "%s: ", path);
}

cvy_status cvy_decode_reserve(int64_t width, int64_t height, int64_t max_pixels, struct cvy_image *image) {
    if (width < 1 || height < 1 || width > max_pixels / height)
        return CVY_FAIL(CVY_ERR_DATA, "its header says %lldx%lld pixels, between 1 and %lld are allowed",
                        (long long)width, (long long)height, (long long)max_pixels);
    CVY_TRY(cvy_image_reshape(image, 3, height, width, CVY_U8, CVY_NHWC));
    return CVY_OK;
}

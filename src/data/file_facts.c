/* See file_facts.h. JPEG is a chain of segments, PNG one of chunks, WebP a RIFF file; every length is checked. */
#include "data/file_facts.h"

#include "data/big_endian.h"
#include "data/exif.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

/* A start of frame: SOF0 to SOF15, but for DHT, JPG and DAC, which lie between. */
static bool is_frame(int mark) {
    return mark >= 0xC0 && mark <= 0xCF && mark != 0xC4 && mark != 0xC8 && mark != 0xCC;
}

static void read_jpeg(const uint8_t *bytes, size_t n, struct cvy_file_facts *out) {
    enum { SOS = 0xDA, EOI = 0xD9, HEIGHT = 5, WIDTH = 7, N_COMPONENTS = 9 }; /* in a frame */
    size_t at = 2;
    out->format = "JPEG";
    out->orientation = cvy_exif_orientation(bytes, n);
    out->is_truncated = true; /* until an end is found */
    while (at + 4 <= n && bytes[at] == 0xFF && bytes[at + 1] != SOS) {
        size_t length = cvy_big_endian(bytes + at + 2, 2);
        if (bytes[at + 1] == 0xFF) {
            at++;
            continue;
        }
        if (is_frame(bytes[at + 1]) && at + N_COMPONENTS < n) {
            int channels = bytes[at + N_COMPONENTS];
            out->height = cvy_big_endian(bytes + at + HEIGHT, 2);
            out->width = cvy_big_endian(bytes + at + WIDTH, 2);
            out->converted = channels == 1 ? "grey" : channels == 4 ? "CMYK" : NULL;
        }
        at += 2 + length;
    }
    for (; at + 2 <= n && out->is_truncated; at++) /* in the pixels 0xFF is followed by 0 or a restart */
        out->is_truncated = bytes[at] != 0xFF || bytes[at + 1] != EOI;
}

static void read_png(const uint8_t *bytes, size_t n, struct cvy_file_facts *out) {
    static const char *const modes[] = {"grey", NULL, NULL, "palette", "grey with alpha", NULL, "alpha"};
    enum { HEADER = 26, WIDTH = 16, HEIGHT = 20, DEPTH = 24, COLOUR = 25, FIRST = 8, CHUNK = 12 };
    out->format = "PNG";
    out->is_truncated = true;
    if (n < HEADER)
        return;
    out->width = cvy_big_endian(bytes + WIDTH, 4);
    out->height = cvy_big_endian(bytes + HEIGHT, 4);
    if (bytes[COLOUR] < sizeof modes / sizeof *modes)
        out->converted = modes[bytes[COLOUR]];
    if (bytes[DEPTH] == 16)
        out->converted = "16 bits";
    for (size_t at = FIRST; at + CHUNK <= n && out->is_truncated;) {
        const size_t length = cvy_big_endian(bytes + at, 4);
        if (length > n - at - CHUNK)
            return;
        out->is_animated = out->is_animated || memcmp(bytes + at + 4, "acTL", 4) == 0;
        out->is_truncated = memcmp(bytes + at + 4, "IEND", 4) != 0;
        at += CHUNK + length;
    }
}

static uint32_t little_endian(const uint8_t *bytes, int n) {
    uint32_t value = 0;
    for (int k = 0; k < n; k++)
        value |= (uint32_t)bytes[k] << 8 * k;
    return value;
}

/* Three kinds of first chunks, each with an encoding of its own; 14 bits are a side, and in two kinds less 1. */
static void read_webp_size(const uint8_t *bytes, struct cvy_file_facts *out) {
    enum {
        WIDTH = 24,
        HEIGHT = 27,
        LOSSLESS = 21,
        LOSSY_WIDTH = 26,
        LOSSY_HEIGHT = 28,
        SIDE = (1 << 14) - 1
    };
    if (memcmp(bytes + 12, "VP8X", 4) == 0) {
        out->width = 1 + (int64_t)little_endian(bytes + WIDTH, 3);
        out->height = 1 + (int64_t)little_endian(bytes + HEIGHT, 3);
    } else if (memcmp(bytes + 12, "VP8L", 4) == 0) {
        out->width = 1 + (little_endian(bytes + LOSSLESS, 4) & SIDE);
        out->height = 1 + (little_endian(bytes + LOSSLESS, 4) >> 14 & SIDE);
    } else {
        out->width = little_endian(bytes + LOSSY_WIDTH, 2) & SIDE;
        out->height = little_endian(bytes + LOSSY_HEIGHT, 2) & SIDE;
    }
}

static void read_webp(const uint8_t *bytes, size_t n, struct cvy_file_facts *out) {
    enum { FLAGS = 20, ANIMATION = 2, ALPHA = 16, LOSSLESS_ALPHA = 24, N_HEADER = 30 };
    out->format = "WebP";
    out->is_truncated = true;
    if (n < N_HEADER)
        return;
    /* sizes are little-endian, and leave out the first two words */
    const uint64_t size = little_endian(bytes + 4, 4);
    out->is_truncated = size + 8 > n;
    read_webp_size(bytes, out);
    bool has_alpha = memcmp(bytes + 12, "VP8L", 4) == 0 && bytes[LOSSLESS_ALPHA] & 16;
    if (memcmp(bytes + 12, "VP8X", 4) == 0) {
        out->is_animated = bytes[FLAGS] & ANIMATION;
        has_alpha = bytes[FLAGS] & ALPHA;
    }
    out->converted = has_alpha ? "alpha" : NULL;
}

void cvy_file_facts(const void *bytes, size_t n, struct cvy_file_facts *out) {
    *out = (struct cvy_file_facts){.orientation = 1};
    if (n >= 3 && memcmp(bytes, "\xFF\xD8\xFF", 3) == 0)
        read_jpeg(bytes, n, out);
    else if (n >= 8 && memcmp(bytes, "\x89PNG\r\n\x1A\n", 8) == 0)
        read_png(bytes, n, out);
    else if (n >= 12 && memcmp((const char *)bytes + 8, "WEBP", 4) == 0)
        read_webp(bytes, n, out);
}

bool cvy_suffix_fits(const char *path, const char *format) {
    static const struct {
        const char *suffix, *format;
    } known[] = {{".jpg", "JPEG"}, {".jpeg", "JPEG"}, {".png", "PNG"}, {".webp", "WebP"}};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof known / sizeof *known; i++)
        if (strcasecmp(dot, known[i].suffix) == 0)
            return strcmp(format, known[i].format) == 0;
    return false;
}

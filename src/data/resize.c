/* Two passes, rows then columns, with fixed-point weights. One axis, from n to m pixels, scale s = n / m:
   target pixel x has its centre at (x + 1/2) s; the weight of source pixel i is the triangle
   max(0, 1 - |i + 1/2 - centre| / max(s, 1)), normalised to sum 1. The triangle widens when shrinking: that is
   the antialias. Rounding follows Pillow: weights of 22 bits, one rounding to a byte after each pass. */
#include "data/resize.h"

#include "base/clones.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WEIGHT_BITS = 32 - 8 - 2, /* 255 x the sum of weights stays below 2^31 */
    HALF = 1 << (WEIGHT_BITS - 1),
};

void cvy_resizer_free(struct cvy_resizer *resizer) {
    cvy_vec_free(&resizer->spans);
    cvy_vec_free(&resizer->weights);
    cvy_image_free(&resizer->rows);
}

static double triangle(double x) {
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

/* Fills spans and weights for one axis. */
static cvy_status plan_axis(struct cvy_resizer *r, int64_t from, int64_t to) {
    double scale = (double)from / (double)to, support = scale < 1 ? 1 : scale;
    r->spans.n = r->weights.n = 0;
    CVY_TRY(cvy_vec_grow(&r->spans, (size_t)to));
    for (int64_t x = 0; x < to; x++) {
        double centre = ((double)x + 0.5) * scale, total = 0;
        int64_t first = (int64_t)(centre - support + 0.5), end = (int64_t)(centre + support + 0.5);
        first = first < 0 ? 0 : first;
        end = end > from ? from : end;
        for (int64_t i = first; i < end; i++)
            total += triangle(((double)i - centre + 0.5) * (1 / support));
        r->spans.data[r->spans.n++] =
            (struct cvy_span){.first = first, .n = end - first, .weights = r->weights.n};
        CVY_TRY(cvy_vec_grow(&r->weights, (size_t)(end - first)));
        for (int64_t i = first; i < end; i++) {
            double weight = triangle(((double)i - centre + 0.5) * (1 / support)) / total;
            r->weights.data[r->weights.n++] = (int32_t)(0.5 + weight * (1 << WEIGHT_BITS));
        }
    }
    return CVY_OK;
}

/* ---- loops ------------------------------------------------------------------------------------------- */

/* Pixels of several rows at once, or of one row: 16 sums. Loads and stores may pass the end of an image by less than
   CVY_IMAGE_SLACK. */
enum { LANES = 16 };
typedef int32_t sums_t __attribute__((vector_size(4 * LANES)));
typedef uint16_t halves_t __attribute__((vector_size(2 * LANES)));
typedef uint8_t bytes_t __attribute__((vector_size(LANES)));

/* By way of 16 bits: compilers have instructions for each half of the way, and not all of them for the whole. Macros,
   since functions of such vectors have another ABI for each instruction set. */
#define WIDEN(bytes) __builtin_convertvector(__builtin_convertvector(bytes, halves_t), sums_t)
#define NARROW(sums) __builtin_convertvector(sums, bytes_t)
/* Sums start at HALF. */
#define ROUND(sums, bytes)                                          \
    do {                                                            \
        sums_t values_ = (sums) >> WEIGHT_BITS;                     \
        sums_t is_over_ = values_ > 255;                            \
        (bytes) = NARROW((values_ & ~is_over_) | (255 & is_over_)); \
    } while (0)

static uint8_t round_sum(int32_t sum) {
    int32_t value = sum >> WEIGHT_BITS;
    return value > 255 ? 255 : (uint8_t)value;
}

/* H,W,C to H,out->width,C. */
static void resize_rows(const struct cvy_resizer *r, const struct cvy_image *from, struct cvy_image *out) {
    const int64_t channels = from->channels;
    for (int64_t y = 0; y < from->height; y++) {
        const uint8_t *row = (const uint8_t *)from->pixels + y * from->width * channels;
        uint8_t *to = (uint8_t *)out->pixels + y * out->width * channels;
        for (int64_t x = 0; x < out->width; x++) {
            const struct cvy_span *span = &r->spans.data[x];
            const int32_t *weights = r->weights.data + span->weights;
            const uint8_t *source = row + span->first * channels;
            for (int64_t c = 0; c < channels; c++) {
                int32_t sum = HALF;
                for (int64_t i = 0; i < span->n; i++)
                    sum += weights[i] * source[i * channels + c];
                *to++ = round_sum(sum);
            }
        }
    }
}

/* The same for RGB: a pixel of four rows at once, each with the byte behind it as a fourth channel. */
enum { ROWS = 4, RGB = 3, PIXEL = LANES / ROWS };

typedef uint32_t pixels_t __attribute__((vector_size(LANES)));

static inline uint32_t load_pixel(const uint8_t *at) {
    uint32_t pixel;
    memcpy(&pixel, at, PIXEL);
    return pixel;
}

/* The byte behind is written over with the next pixel, if there is one. */
static inline void store_pixel(uint32_t pixel, bool is_last, uint8_t *at) {
    memcpy(at, &pixel, is_last ? RGB : PIXEL);
}

CVY_CLONES
static void resize_rgb_rows(const struct cvy_resizer *r, const struct cvy_image *from,
                            struct cvy_image *out) {
    const int64_t height = from->height, from_row = from->width * RGB, to_row = out->width * RGB;
    for (int64_t y = 0; y < height; y += ROWS) {
        const uint8_t *rows[ROWS];
        uint8_t *to[ROWS];
        for (int64_t k = 0; k < ROWS; k++) {
            int64_t at = y + k < height ? y + k : height - 1; /* the last row again and again */
            rows[k] = (const uint8_t *)from->pixels + at * from_row;
            to[k] = (uint8_t *)out->pixels + at * to_row;
        }
        for (int64_t x = 0; x < out->width; x++) {
            const struct cvy_span *span = &r->spans.data[x];
            const int32_t *weights = r->weights.data + span->weights;
            sums_t sums = {0};
            sums += HALF;
            for (int64_t i = 0; i < span->n; i++) {
                const int64_t at = (span->first + i) * RGB;
                pixels_t pixels = {load_pixel(rows[0] + at), load_pixel(rows[1] + at),
                                   load_pixel(rows[2] + at), load_pixel(rows[3] + at)};
                sums += WIDEN((bytes_t)pixels) * weights[i];
            }
            bytes_t bytes;
            ROUND(sums, bytes);
            const pixels_t pixels = (pixels_t)bytes;
            for (int k = 0; k < ROWS; k++)
                store_pixel(pixels[k], x + 1 == out->width, to[k] + x * RGB);
        }
    }
}

/* One row of n bytes from span->n rows. */
CVY_CLONES
static void resize_column_span(const uint8_t *rows, int64_t n, const int32_t *weights, int64_t n_rows,
                               uint8_t *to) {
    for (int64_t j = 0; j < n; j += LANES) {
        sums_t sums = {0};
        sums += HALF;
        for (int64_t i = 0; i < n_rows; i++) {
            bytes_t bytes;
            memcpy(&bytes, rows + i * n + j, LANES);
            sums += WIDEN(bytes) * weights[i];
        }
        bytes_t bytes;
        ROUND(sums, bytes);
        memcpy(to + j, &bytes, LANES);
    }
}

/* H,W,C to out->height,W,C. A row's last store may pass its end: the next row comes later. */
static void resize_columns(const struct cvy_resizer *r, const struct cvy_image *from, struct cvy_image *out) {
    const int64_t n = from->width * from->channels;
    for (int64_t y = 0; y < out->height; y++) {
        const struct cvy_span *span = &r->spans.data[y];
        resize_column_span((const uint8_t *)from->pixels + span->first * n, n,
                           r->weights.data + span->weights, span->n, (uint8_t *)out->pixels + y * n);
    }
}

/* ---- both passes ------------------------------------------------------------------------------------- */

cvy_status cvy_resize(struct cvy_resizer *resizer, const struct cvy_image *from, int64_t height,
                      int64_t width, struct cvy_image *out) {
    const struct cvy_image *rows = from;
    CVY_TRY(cvy_image_reshape(out, from->channels, height, width, CVY_U8, CVY_NHWC));
    if (width != from->width) {
        struct cvy_image *to = height == from->height ? out : &resizer->rows;
        CVY_TRY(cvy_image_reshape(to, from->channels, from->height, width, CVY_U8, CVY_NHWC));
        CVY_TRY(plan_axis(resizer, from->width, width));
        (from->channels == RGB ? resize_rgb_rows : resize_rows)(resizer, from, to);
        rows = to;
    }
    if (height != from->height) {
        CVY_TRY(plan_axis(resizer, from->height, height));
        resize_columns(resizer, rows, out);
    } else if (rows == from) {
        memcpy(out->pixels, from->pixels, (size_t)(height * width * from->channels));
    }
    return CVY_OK;
}

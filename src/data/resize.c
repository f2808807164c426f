/* Two passes, rows then columns, with fixed-point weights. One axis, from n to m pixels, scale s = n / m:
   target pixel x has its centre at (x + 1/2) s; the weight of source pixel i is the triangle
   max(0, 1 - |i + 1/2 - centre| / max(s, 1)), normalised to sum 1. The triangle widens when shrinking: that is
   the antialias. Rounding follows Pillow: weights of 22 bits, one rounding to a byte after each pass. */
#include "data/resize.h"

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
    cvy_vec_free(&resizer->sums);
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

static uint8_t round_sum(int32_t sum) {
    int32_t value = sum >> WEIGHT_BITS; /* sums start at HALF */
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

/* H,W,C to out->height,W,C. */
static void resize_columns(struct cvy_resizer *r, const struct cvy_image *from, struct cvy_image *out) {
    const int64_t n = from->width * from->channels;
    int32_t *restrict sums = r->sums.data;
    for (int64_t y = 0; y < out->height; y++) {
        const struct cvy_span *span = &r->spans.data[y];
        for (int64_t j = 0; j < n; j++)
            sums[j] = HALF;
        for (int64_t i = 0; i < span->n; i++) {
            const int32_t weight = r->weights.data[span->weights + (size_t)i];
            const uint8_t *restrict row = (const uint8_t *)from->pixels + (span->first + i) * n;
            for (int64_t j = 0; j < n; j++)
                sums[j] += weight * row[j];
        }
        uint8_t *restrict to = (uint8_t *)out->pixels + y * n;
        for (int64_t j = 0; j < n; j++)
            to[j] = round_sum(sums[j]);
    }
}

cvy_status cvy_resize(struct cvy_resizer *resizer, const struct cvy_image *from, int64_t height,
                      int64_t width, struct cvy_image *out) {
    const struct cvy_image *rows = from;
    CVY_TRY(cvy_image_reshape(out, from->channels, height, width, CVY_U8, CVY_NHWC));
    if (width != from->width) {
        struct cvy_image *to = height == from->height ? out : &resizer->rows;
        CVY_TRY(cvy_image_reshape(to, from->channels, from->height, width, CVY_U8, CVY_NHWC));
        CVY_TRY(plan_axis(resizer, from->width, width));
        resize_rows(resizer, from, to);
        rows = to;
    }
    if (height != from->height) {
        CVY_TRY(plan_axis(resizer, from->height, height));
        CVY_TRY(cvy_vec_grow(&resizer->sums, (size_t)(width * from->channels)));
        resize_columns(resizer, rows, out);
    } else if (rows == from) {
        memcpy(out->pixels, from->pixels, (size_t)(height * width * from->channels));
    }
    return CVY_OK;
}

/* MixUp and CutMix: the draw, image by image, row by row of class probabilities. */
#include "ops/mix.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/rows.h"

static void draw_once(const struct cpu_rows *me, int64_t first, int64_t end) {
    const int64_t *rng = me->in[0];
    (void)first, (void)end; /* 0 and 1 */
    cvy_mix_draw(me->attrs, (uint64_t)rng[0], (uint64_t)rng[1], me->out[0]);
}

/* n pixels: y = own a + (1 - own) b */
CPU_INLINE void blend(float *y, const float *a, const float *b, int64_t n, float own) {
    if (own == 1)
        memcpy(y, a, (size_t)n * sizeof *y);
    for (int64_t i = 0; i < n && own != 1; i++)
        y[i] = own * a[i] + (1 - own) * b[i];
}

/* A row of pixels is a row of the kernel. */
CPU_VECTOR static void mix_rows(const struct cpu_rows *me, int64_t first, int64_t end) {
    const float *x = me->in[0], *draw = me->in[1];
    const int64_t width = me->n, of_image = me->n_rows / me->images, height = me->shape.dim[2];
    const int64_t left = (int64_t)draw[CVY_MIX_LEFT], right = (int64_t)draw[CVY_MIX_RIGHT];
    for (int64_t r = first; r < end; r++) {
        int64_t other = cvy_mix_partner(r / of_image, me->images) * of_image + r % of_image;
        float *y = (float *)me->out[0] + r * width, row = (float)(r % height);
        blend(y, x + r * width, x + other * width, width, draw[CVY_MIX_PIXELS]);
        if (row >= draw[CVY_MIX_TOP] && row < draw[CVY_MIX_BOTTOM] && left < right && right <= width)
            memcpy(y + left, x + other * width + left, (size_t)(right - left) * sizeof *y);
    }
}

static void target_rows(const struct cpu_rows *me, int64_t first, int64_t end) {
    const int64_t *labels = me->in[0];
    const float share = ((const float *)me->in[1])[CVY_MIX_SHARE];
    for (int64_t n = first; n < end; n++) {
        int64_t own = labels[n], other = labels[cvy_mix_partner(n, me->images)];
        bool are_classes = own >= 0 && own < me->n && other >= 0 && other < me->n;
        float *t = (float *)me->out[0] + n * me->n;
        for (int64_t k = 0; k < me->n; k++)
            t[k] = are_classes ? 0 : NAN;
        if (are_classes) {
            t[own] += share;
            t[other] += 1 - share;
        }
    }
}

CPU_ROWS_KERNEL(mix_draw, .row = CPU_ROW_ALL, .span = draw_once)
CPU_ROWS_KERNEL(mix, .of_output = true, .row = CPU_ROW_LAST, .span = mix_rows)
CPU_ROWS_KERNEL(mix_targets, .of_output = true, .row = CPU_ROW_LAST, .span = target_rows)

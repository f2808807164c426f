/* Attributes of the operators of MixUp and CutMix, and what a draw is. */
#ifndef CVY_OPS_MIX_H
#define CVY_OPS_MIX_H

#include <stdbool.h>
#include <stdint.h>

struct cvy_mix_draw_attrs {
    double mixup_alpha, cutmix_alpha; /* 0: not this one */
    int64_t image[2];                 /* height, width */
    bool training;                    /* false: nothing is mixed */
};

struct cvy_mix_targets_attrs {
    int64_t classes;
};

/* A draw: the image's own share of the targets; of its pixels outside the box; the box of the partner's pixels, which
   ends before bottom and right. */
enum {
    CVY_MIX_SHARE,
    CVY_MIX_PIXELS,
    CVY_MIX_TOP,
    CVY_MIX_LEFT,
    CVY_MIX_BOTTOM,
    CVY_MIX_RIGHT,
    CVY_MIX_DRAW, /* how many numbers it has */
};

/* The draw of an update, see mix.c. */
void cvy_mix_draw(const struct cvy_mix_draw_attrs *attrs, uint64_t seed, uint64_t step, float *draw);

/* Image n is mixed with the one before it in its shard, the first with the last. */
static inline int64_t cvy_mix_partner(int64_t n, int64_t images) { return (n + images - 1) % images; }

#endif

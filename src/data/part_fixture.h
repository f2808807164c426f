/* For tests of parts of images: boxes at any place, and what they must hold. */
#ifndef CVY_DATA_PART_FIXTURE_H
#define CVY_DATA_PART_FIXTURE_H

#include "base/rng.h"
#include "data/decode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct choice {
    struct cvy_box box;
    int n_calls;
};

static inline struct cvy_box choose(void *context, int64_t height, int64_t width) {
    struct choice *choice = context;
    assert_true(choice->box.top + choice->box.height <= height);
    assert_true(choice->box.left + choice->box.width <= width);
    choice->n_calls++;
    return choice->box;
}

/* A box of any size at any place, now and then at an edge. */
static inline struct cvy_box draw_box(struct cvy_rng *rng, int64_t height, int64_t width) {
    struct cvy_box box = {.height = 1 + cvy_rng_below(rng, (uint32_t)height),
                          .width = 1 + cvy_rng_below(rng, (uint32_t)width)};
    box.top = cvy_rng_below(rng, (uint32_t)(height - box.height + 1));
    box.left = cvy_rng_below(rng, (uint32_t)(width - box.width + 1));
    return box;
}

static inline void assert_same(const struct cvy_image *a, const struct cvy_image *b, const char *name,
                               const struct cvy_box *box) {
    assert_int_equal(a->height, b->height);
    assert_int_equal(a->width, b->width);
    if (memcmp(a->pixels, b->pixels, (size_t)(3 * a->height * a->width)) != 0)
        fail_msg("%s: other pixels at %lld,%lld of %lldx%lld", name, (long long)box->top,
                 (long long)box->left, (long long)box->height, (long long)box->width);
}

#endif

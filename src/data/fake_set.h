/* For tests of what reads data sets: grey images that are made up, slow, bad or stuck as the test says. */
#ifndef CVY_DATA_FAKE_SET_H
#define CVY_DATA_FAKE_SET_H

#include "base/rng.h"
#include "data/data.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { FAKE_CLASSES = 10 };

struct fake {
    struct cvy_dataset head;
    int64_t bad_image, bad_image_2, bad_label, stuck; /* indices, -1: none */
    pthread_mutex_t *never;                           /* who reads the image that is stuck waits for it */
    int max_delay_us;                                 /* reads take up to this long, to shuffle the workers */
    atomic_int n_reads;
};

/* Square images of bytes of any kind. */
static inline struct cvy_dataset fake_head(int64_t channels, int64_t side) {
    return (struct cvy_dataset){.spec = (char *)"fake",
                                .channels = channels,
                                .height = side,
                                .width = side,
                                .dtype = CVY_U8,
                                .order = CVY_NHWC,
                                .preset = "none"};
}

/* Pixel p of image i is 31 i + p, modulo 256. */
static inline cvy_status fake_pixels(const struct cvy_dataset *dataset, int64_t i, struct cvy_image *image) {
    struct fake *fake = (struct fake *)dataset;
    atomic_fetch_add(&fake->n_reads, 1);
    if (fake->max_delay_us) {
        struct cvy_rng rng;
        cvy_rng_init(&rng, 1, CVY_RNG_TEST, (uint64_t)i, 0);
        struct timespec delay = {.tv_nsec = 1000L * cvy_rng_below(&rng, (uint32_t)fake->max_delay_us)};
        nanosleep(&delay, NULL);
    }
    if (i == fake->stuck)
        pthread_mutex_lock(fake->never);
    if (i == fake->bad_image || i == fake->bad_image_2)
        return CVY_FAIL(CVY_ERR_DATA, "image %lld is rotten", (long long)i);
    CVY_TRY(cvy_image_reshape(image, 1, dataset->height, dataset->width, CVY_U8, CVY_NHWC));
    for (int64_t p = 0; p < dataset->height * dataset->width; p++)
        ((uint8_t *)image->pixels)[p] = (uint8_t)(i * 31 + p);
    return CVY_OK;
}

static inline cvy_status fake_label(const struct cvy_dataset *dataset, int64_t i, int64_t *out) {
    *out = i == ((const struct fake *)dataset)->bad_label ? 12 : i % FAKE_CLASSES;
    return CVY_OK;
}

/* n grey images, nothing wrong with them; format, class names and release are the test's. */
static inline struct fake fake_set(int64_t n, int64_t side, const struct cvy_format *format) {
    struct fake fake = {
        .head = fake_head(1, side), .bad_image = -1, .bad_image_2 = -1, .bad_label = -1, .stuck = -1};
    fake.head.format = format;
    fake.head.n = n;
    fake.head.n_classes = FAKE_CLASSES;
    return fake;
}

#endif

/* synthetic:CxHxW,classes=K,images=N: images made from their index, for benchmarks and tests without files.
   Sample i has label i mod K and pixels (pattern + noise) / 2, where the pattern, a grid of random grey blocks,
   is that of its class and the noise its own: a network can learn it. Whole numbers only, so that all machines
   agree. The val split has the same patterns and other noise. */
#include "base/mem.h"
#include "base/rng.h"
#include "base/text.h"
#include "data/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRID = 4, MAX_CHANNELS = 4, MAX_SIDE = 4096, MAX_CLASSES = 100000 };
static const int64_t MAX_IMAGES = INT64_C(1) << 31;

enum { SEED_PATTERN = 0, SEED_TRAIN = 1, SEED_VAL = 2 };

/* One of the settings that stand behind the size. */
static cvy_status set_option(struct cvy_dataset *head, char *text) {
    char *value = strchr(text, '=');
    int64_t number;
    if (!value || !cvy_parse_i64(value + 1, &number))
        return CVY_FAIL(CVY_ERR_USAGE, "'%s' is not NAME=NUMBER", text);
    *value = '\0';
    if (strcmp(text, "classes") == 0 && number >= 1 && number <= MAX_CLASSES)
        head->n_classes = number;
    else if (strcmp(text, "images") == 0 && number >= 1 && number <= MAX_IMAGES)
        head->n = number;
    else
        return CVY_FAIL(CVY_ERR_USAGE, "'%s=%lld': classes (1 to %d) and images (1 to %lld) are known", text,
                        (long long)number, MAX_CLASSES, (long long)MAX_IMAGES);
    return CVY_OK;
}

/* Destroys `text`. */
static cvy_status parse(struct cvy_dataset *head, char *text) {
    char *rest = text, *size = strsep(&rest, ","), *option;
    long long c, h, w;
    int n_read = 0;
    if (sscanf(size, "%lldx%lldx%lld%n", &c, &h, &w, &n_read) != 3 || size[n_read] || c < 1 ||
        c > MAX_CHANNELS || h < 1 || h > MAX_SIDE || w < 1 || w > MAX_SIDE)
        return CVY_FAIL(CVY_ERR_USAGE, "'%s' is not CxHxW with 1 to %d channels and sides of 1 to %d", size,
                        MAX_CHANNELS, MAX_SIDE);
    head->channels = c;
    head->height = h;
    head->width = w;
    while ((option = strsep(&rest, ",")))
        CVY_TRY(set_option(head, option));
    return CVY_OK;
}

static void synthetic_free(struct cvy_dataset *dataset) { free(dataset); }

static cvy_status synthetic_open(const char *argument, cvy_split split, const cvy_log_sink *log,
                                 struct cvy_dataset **out) {
    (void)split, (void)log;
    struct cvy_dataset *head;
    cvy_status status;
    char *text = strdup(argument);
    if (!text)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for '%s'", argument);
    CVY_TRY_OUT(CVY_ALLOC(head, 1));
    *head = (struct cvy_dataset){
        .n = 1000, .n_classes = 10, .dtype = CVY_U8, .order = CVY_NHWC, .preset = "none"};
    *out = head;
    status = parse(head, text);
    if (status != CVY_OK) {
        status = cvy_fail_prefix(status, "data 'synthetic:%s': ", argument);
        goto out;
    }
    CVY_TRY_OUT(cvy_dataset_number_classes(head, head->n_classes));
out:
    free(text);
    return status;
}

static cvy_status synthetic_label(const struct cvy_dataset *dataset, int64_t i, int64_t *out) {
    *out = i % dataset->n_classes;
    return CVY_OK;
}

/* n random bytes, four a number. */
static void fill_noise(struct cvy_rng *rng, uint8_t *bytes, size_t n) {
    for (size_t at = 0; at < n; at += 4) {
        uint32_t number = cvy_rng_u32(rng);
        for (size_t k = at; k < at + 4 && k < n; k++, number >>= 8)
            bytes[k] = (uint8_t)number;
    }
}

static cvy_status synthetic_read(const struct cvy_dataset *dataset, int64_t i, struct cvy_image *image) {
    uint8_t pattern[GRID * GRID * MAX_CHANNELS];
    struct cvy_rng rng;
    CVY_TRY(cvy_image_reshape(image, dataset->channels, dataset->height, dataset->width, CVY_U8, CVY_NHWC));
    cvy_rng_init(&rng, SEED_PATTERN, CVY_RNG_SYNTHETIC, (uint64_t)(i % dataset->n_classes), 0);
    fill_noise(&rng, pattern, sizeof pattern);
    cvy_rng_init(&rng, dataset->split == CVY_SPLIT_TRAIN ? SEED_TRAIN : SEED_VAL, CVY_RNG_SYNTHETIC,
                 (uint64_t)i, 0);
    uint8_t *pixel = image->pixels;
    fill_noise(&rng, pixel, (size_t)(image->height * image->width * image->channels));
    for (int64_t y = 0; y < image->height; y++) {
        for (int64_t x = 0; x < image->width; x++) {
            int64_t block = y * GRID / image->height * GRID + x * GRID / image->width;
            for (int64_t c = 0; c < image->channels; c++, pixel++)
                *pixel = (uint8_t)((*pixel + pattern[block * MAX_CHANNELS + c]) / 2);
        }
    }
    return CVY_OK;
}

const struct cvy_format cvy_format_synthetic = {
    .prefix = "synthetic",
    .help = "synthetic:CxHxW,classes=K,images=N   made-up images that can be learnt (K = 10, N = 1000)",
    .open = synthetic_open,
    .free = synthetic_free,
    .pixels = synthetic_read,
    .label = synthetic_label,
};

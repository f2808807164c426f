/* Planning and applying transforms. All of them but the resize move pixels and never compute with them, so one
   loop serves bytes and floats: an image is `planes` planes of pixels of `pixel` bytes (NHWC: one plane, a
   pixel holds all channels; NCHW: a plane a channel). */
#include "data/transform.h"

#include "data/grey.h"
#include "data/random_erase.h"
#include "data/resized_crop.h"

#include <math.h>
#include <string.h>

enum { MAX_CHANNELS = sizeof((cvy_batch *)0)->mean / sizeof(float), MAX_SIDE = 65536 };

struct preset {
    const char *name;
    int64_t pad;
    bool flip;
    bool is_resized_crop; /* evaluation then takes the centre's 7/8: 224 of a shorter side of 256 */
};

static const struct preset presets[] = {
    {"none", -1, false, false},
    {"cifar", 4, true, false},    /* He et al., 2015 */
    {"imagenet", -1, true, true}, /* as torchvision's reference scripts train */
};

bool cvy_preset_resizes(const char *preset) { return preset && strcmp(preset, "imagenet") == 0; }

static cvy_status find_preset(const char *name, const struct preset **out) {
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        if (strcmp(name, presets[i].name) == 0) {
            *out = &presets[i];
            return CVY_OK;
        }
    }
    return CVY_FAIL(CVY_ERR_USAGE, "preset '%s' is unknown, say 'none', 'cifar' or 'imagenet'", name);
}

/* Channels as they are, or one of three. */
static cvy_status plan_channels(const struct cvy_dataset *dataset, const cvy_loader_options *options,
                                struct cvy_transform *t) {
    bool is_rgb = dataset->channels == 3 && dataset->dtype == CVY_U8 && dataset->order == CVY_NHWC;
    if (dataset->channels < 1 || dataset->channels > MAX_CHANNELS)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "the images of '%s' have %lld channels, 1 to %d are supported",
                        dataset->spec, (long long)dataset->channels, MAX_CHANNELS);
    t->channels = options->channels ? options->channels : dataset->channels;
    t->to_grey = t->channels == 1 && is_rgb;
    if (t->channels != dataset->channels && !t->to_grey)
        return CVY_FAIL(CVY_ERR_USAGE, "the network takes images of %lld channels, those of '%s' have %lld",
                        (long long)t->channels, dataset->spec, (long long)dataset->channels);
    return CVY_OK;
}

static float luma(const float *rgb) {
    return (CVY_LUMA_R * rgb[0] + CVY_LUMA_G * rgb[1] + CVY_LUMA_B * rgb[2]) / CVY_LUMA_ONE;
}

static cvy_status to_grey(const struct cvy_image *from, struct cvy_image *out) {
    CVY_TRY(cvy_image_reshape(out, 1, from->height, from->width, CVY_U8, CVY_NHWC));
    const uint8_t *rgb = from->pixels;
    uint8_t *grey = out->pixels;
    for (int64_t i = 0; i < from->height * from->width; i++, rgb += 3)
        grey[i] = cvy_grey(rgb);
    return CVY_OK;
}

static cvy_status plan_normalisation(const struct cvy_dataset *dataset, const cvy_loader_options *options,
                                     struct cvy_transform *t) {
    const float grey_mean[MAX_CHANNELS] = {luma(dataset->mean)},
                grey_std[MAX_CHANNELS] = {luma(dataset->std)};
    const float *mean = options->has_mean_std ? options->mean : t->to_grey ? grey_mean : dataset->mean;
    const float *std = options->has_mean_std ? options->std : t->to_grey ? grey_std : dataset->std;
    for (int c = 0; c < MAX_CHANNELS; c++) {
        bool is_said = options->has_mean_std ? c < t->channels : dataset->std[0] > 0;
        t->mean[c] = is_said ? mean[c] : 0;
        t->std[c] = is_said ? std[c] : 1;
        if (!isfinite(t->mean[c]) || !isfinite(t->std[c]) || (c < t->channels && t->std[c] <= 0))
            return CVY_FAIL(CVY_ERR_USAGE, "mean %g, std %g of channel %d: must be finite, std above 0",
                            (double)t->mean[c], (double)t->std[c], c);
    }
    return CVY_OK;
}

/* Sizes. Where they vary, the default resize makes the shorter side as long as the crop's longer one. */
static cvy_status plan_size(const struct cvy_dataset *dataset, const cvy_loader_options *options,
                            bool is_resized_crop, struct cvy_transform *t) {
    bool is_varied = dataset->height == 0;
    t->height = options->crop[0] ? options->crop[0] : options->resize ? options->resize : dataset->height;
    t->width = options->crop[1] ? options->crop[1] : options->resize ? options->resize : dataset->width;
    t->resize = options->resize;
    int64_t longer = t->height > t->width ? t->height : t->width;
    if (is_resized_crop && !t->resize)
        t->resize = (longer * 8 + 3) / 7;
    else if (is_varied && !t->resize)
        t->resize = longer;
    if (options->resize < 0 || options->crop[0] < 0 || options->crop[1] < 0 || t->resize > MAX_SIDE ||
        t->height > MAX_SIDE || t->width > MAX_SIDE)
        return CVY_FAIL(CVY_ERR_USAGE, "resize %lld, crop %lldx%lld: must be between 0 and %d",
                        (long long)options->resize, (long long)options->crop[0], (long long)options->crop[1],
                        MAX_SIDE);
    if (t->height == 0 || t->width == 0)
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "the images of '%s' may be of any size: say how large a crop to take, as in --crop 224x224",
            dataset->spec);
    if (t->resize && dataset->dtype != CVY_U8)
        return CVY_FAIL(CVY_ERR_USAGE, "the images of '%s' are floats, they cannot be resized",
                        dataset->spec);
    int64_t room = t->pad > 0 ? 2 * t->pad : 0;
    int64_t height = (t->resize ? t->resize : dataset->height) + room;
    int64_t width = (t->resize ? t->resize : dataset->width) + room;
    if (t->height > height || t->width > width)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "a crop of %lldx%lld does not fit images of '%s', at least %lldx%lld: "
                        "resize to more, or crop less",
                        (long long)t->height, (long long)t->width, dataset->spec, (long long)height,
                        (long long)width);
    return CVY_OK;
}

static bool is_distorted(const struct cvy_transform *t) {
    bool has_jitter = false;
    for (int i = 0; i < 4; i++)
        has_jitter = has_jitter || t->color_jitter[i] > 0;
    return has_jitter || t->auto_augment != CVY_AUTO_NONE;
}

static cvy_status plan_distortion(const struct cvy_dataset *dataset, const cvy_loader_options *options,
                                  struct cvy_transform *t) {
    enum cvy_auto_augment policy;
    CVY_TRY(cvy_auto_augment_find(options->auto_augment, &policy));
    if (options->ra_magnitude < 0 || options->ra_magnitude >= CVY_MAGNITUDES)
        return CVY_FAIL(CVY_ERR_USAGE, "magnitude %d of RandAugment: must be 0 to %d", options->ra_magnitude,
                        CVY_MAGNITUDES - 1);
    for (int i = 0; i < 4; i++) {
        if (!(options->color_jitter[i] >= 0 && options->color_jitter[i] <= (i == 3 ? 0.5F : 100)))
            return CVY_FAIL(CVY_ERR_USAGE, "colour jitter %g: must be 0 to 100, for the hue 0 to 0.5",
                            (double)options->color_jitter[i]);
    }
    if (!options->augment)
        return CVY_OK;
    t->auto_augment = policy;
    t->ra_magnitude = options->ra_magnitude;
    memcpy(t->color_jitter, options->color_jitter, sizeof t->color_jitter);
    if (is_distorted(t) && (t->channels != 3 || t->dtype != CVY_U8 || t->order != CVY_NHWC))
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "automatic augmentation and colour jitter take images in colour, of bytes: those of '%s' "
            "are others",
            dataset->spec);
    return CVY_OK;
}

cvy_status cvy_transform_plan(const struct cvy_dataset *dataset, const cvy_loader_options *options,
                              struct cvy_transform *out) {
    const struct preset *preset;
    CVY_TRY(find_preset(options->preset ? options->preset : dataset->preset, &preset));
    if (options->pad < -1 || options->pad > MAX_SIDE)
        return CVY_FAIL(CVY_ERR_USAGE, "padding %lld: must be between 0 and %d", (long long)options->pad,
                        MAX_SIDE);
    if (!(options->random_erase >= 0 && options->random_erase <= 1))
        return CVY_FAIL(CVY_ERR_USAGE, "random erasing with probability %g: must be between 0 and 1",
                        options->random_erase);
    struct cvy_transform t = {.dtype = dataset->dtype, .order = dataset->order, .pad = -1};
    if (options->augment) {
        t.pad = options->pad >= 0 ? options->pad : preset->pad;
        t.flip = options->flip >= 0 ? options->flip : preset->flip;
        t.is_resized_crop = preset->is_resized_crop;
        t.random_erase = options->random_erase;
    }
    if (t.is_resized_crop && options->pad >= 0)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "padding %lld: preset '%s' crops a window and resizes it, it does not pad",
                        (long long)options->pad, preset->name);
    CVY_TRY(plan_channels(dataset, options, &t));
    CVY_TRY(plan_size(dataset, options, preset->is_resized_crop, &t));
    CVY_TRY(plan_normalisation(dataset, options, &t));
    CVY_TRY(plan_distortion(dataset, options, &t));
    *out = t;
    return CVY_OK;
}

cvy_status cvy_transform_scale(const struct cvy_transform *full, const struct cvy_dataset *dataset,
                               int64_t side, struct cvy_transform *out) {
    const int64_t natural = dataset->height < dataset->width ? dataset->height : dataset->width;
    const int64_t whole = full->height, shorter = full->resize ? full->resize : natural;
    if (full->height != full->width || full->dtype != CVY_U8)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "the training images of '%s' are %s: other sizes are for square images of bytes",
                        dataset->spec, full->dtype == CVY_U8 ? "not square" : "floats");
    if (side < 1 || side > whole)
        return CVY_FAIL(CVY_ERR_USAGE, "training images of side %lld: must be 1 to %lld", (long long)side,
                        (long long)whole);
    *out = *full;
    out->height = out->width = side;
    if (side < whole) /* at least side - 2 pad, for shorter >= whole - 2 pad: the crop fits */
        out->resize = (shorter * side + whole / 2) / whole;
    return CVY_OK;
}

size_t cvy_transform_bytes(const struct cvy_transform *t) {
    return (size_t)(t->channels * t->height * t->width) * (t->dtype == CVY_U8 ? 1 : sizeof(float));
}

void cvy_transform_work_free(struct cvy_transform_work *work) {
    cvy_resizer_free(&work->resizer);
    cvy_image_free(&work->grey);
    cvy_image_free(&work->resized);
    cvy_image_free(&work->distorted);
    cvy_image_free(&work->spare);
}

/* Where the crop's corner lies in the image; negative in the padding. */
struct window {
    int64_t top, left;
    bool is_flipped;
};

/* Half of what is left over, a half rounded to even, as torchvision's centre crop does. */
static int64_t centre(int64_t whole, int64_t part) {
    int64_t left_over = whole - part;
    return left_over / 2 + (left_over % 4 == 3);
}

/* Draws in a fixed order: top, left, flip. */
static struct window draw_window(const struct cvy_transform *t, struct cvy_rng *rng,
                                 const struct cvy_image *image) {
    struct window w = {.top = centre(image->height, t->height), .left = centre(image->width, t->width)};
    if (t->pad >= 0) {
        w.top = cvy_rng_below(rng, (uint32_t)(image->height + 2 * t->pad - t->height + 1)) - t->pad;
        w.left = cvy_rng_below(rng, (uint32_t)(image->width + 2 * t->pad - t->width + 1)) - t->pad;
    }
    w.is_flipped = t->flip && cvy_rng_below(rng, 2);
    return w;
}

static inline void mirror(const uint8_t *from, int64_t n, size_t pixel, uint8_t *to) {
    for (int64_t i = 0; i < n; i++)
        memcpy(to + (size_t)(n - 1 - i) * pixel, from + (size_t)i * pixel, pixel);
}

/* n pixels, or the same from right to left. Sizes that the compiler knows are several times as fast. */
static void copy_pixels(const uint8_t *from, int64_t n, size_t pixel, bool is_flipped, uint8_t *to) {
    if (!is_flipped)
        memcpy(to, from, (size_t)n * pixel);
    else if (pixel == 3)
        mirror(from, n, 3, to);
    else if (pixel == 1)
        mirror(from, n, 1, to);
    else
        mirror(from, n, pixel, to);
}

/* One row of the crop from one row of the image; zeros beside it. */
static void copy_row(const uint8_t *from, int64_t from_width, const struct window *w, int64_t width,
                     size_t pixel, uint8_t *to) {
    int64_t begin = w->left < 0 ? -w->left : 0;
    int64_t end = w->left + width > from_width ? from_width - w->left : width;
    begin = begin > width ? width : begin;
    end = end < begin ? begin : end;
    const int64_t before = w->is_flipped ? width - end : begin, n = end - begin;
    memset(to, 0, (size_t)before * pixel);
    if (n > 0)
        copy_pixels(from + (size_t)(w->left + begin) * pixel, n, pixel, w->is_flipped,
                    to + (size_t)before * pixel);
    memset(to + (size_t)(before + n) * pixel, 0, (size_t)(width - before - n) * pixel);
}

static void copy_window(const struct cvy_transform *t, const struct cvy_image *image, const struct window *w,
                        uint8_t *out) {
    size_t element = t->dtype == CVY_U8 ? 1 : sizeof(float);
    int64_t planes = t->order == CVY_NCHW ? t->channels : 1;
    size_t pixel = element * (size_t)(t->channels / planes);
    size_t from_row = (size_t)image->width * pixel, to_row = (size_t)t->width * pixel;
    for (int64_t p = 0; p < planes; p++) {
        const uint8_t *plane = (const uint8_t *)image->pixels + (size_t)(p * image->height) * from_row;
        for (int64_t y = 0; y < t->height; y++, out += to_row) {
            int64_t from_y = w->top + y;
            if (from_y < 0 || from_y >= image->height)
                memset(out, 0, to_row);
            else
                copy_row(plane + (size_t)from_y * from_row, image->width, w, t->width, pixel, out);
        }
    }
}

/* The shorter side as planned; the longer one keeps the ratio, cut to an integer as in torchvision. */
static cvy_status resize_shorter(const struct cvy_transform *t, struct cvy_transform_work *work,
                                 const struct cvy_image **image) {
    const struct cvy_image *from = *image;
    int64_t shorter = from->height < from->width ? from->height : from->width;
    if (!t->resize || t->resize == shorter)
        return CVY_OK;
    int64_t height = from->height * t->resize / shorter, width = from->width * t->resize / shorter;
    if (height > MAX_SIDE || width > MAX_SIDE)
        return CVY_FAIL(CVY_ERR_DATA, "is %lldx%lld: too narrow to be resized to a shorter side of %lld",
                        (long long)from->height, (long long)from->width, (long long)t->resize);
    CVY_TRY(cvy_resize(&work->resizer, from, height, width, &work->resized));
    *image = &work->resized;
    return CVY_OK;
}

static struct cvy_box choose_window(void *context, int64_t height, int64_t width) {
    const struct cvy_transform_draw *draw = context;
    return cvy_draw_resized_crop(draw->rng, height, width);
}

bool cvy_transform_part(struct cvy_transform_draw *draw, struct cvy_image_part *out) {
    const struct cvy_transform *t = draw->transform;
    *out = (struct cvy_image_part){choose_window, draw, t->height, t->width};
    return t->is_resized_crop;
}

static cvy_status resize_window(const struct cvy_transform *t, struct cvy_transform_work *work,
                                const struct cvy_image **image) {
    CVY_TRY(cvy_resize(&work->resizer, *image, t->height, t->width, &work->resized));
    *image = &work->resized;
    return CVY_OK;
}

static cvy_status distort(const struct cvy_transform *t, struct cvy_rng *rng, struct cvy_transform_work *work,
                          void *out) {
    struct cvy_image *image = &work->distorted;
    CVY_TRY(cvy_image_reshape(image, 3, t->height, t->width, CVY_U8, CVY_NHWC));
    memcpy(image->pixels, out, cvy_transform_bytes(t));
    CVY_TRY(cvy_color_jitter(t->color_jitter, rng, image, &work->spare));
    CVY_TRY(cvy_auto_augment(t->auto_augment, t->ra_magnitude, rng, image, &work->spare));
    memcpy(out, image->pixels, cvy_transform_bytes(t));
    return CVY_OK;
}

static void erase(const struct cvy_transform *t, struct cvy_rng *rng, void *out) {
    const struct cvy_image image = {.channels = t->channels,
                                    .height = t->height,
                                    .width = t->width,
                                    .dtype = t->dtype,
                                    .order = t->order,
                                    .pixels = out};
    struct cvy_box box = cvy_draw_random_erase(rng, t->random_erase, t->height, t->width);
    cvy_erase(&image, &box, t->mean);
}

cvy_status cvy_transform_apply(const struct cvy_transform_draw *draw, struct cvy_transform_work *work,
                               const struct cvy_image *image, void *out) {
    const struct cvy_transform *t = draw->transform;
    int64_t channels = t->to_grey ? 3 : t->channels;
    if (image->channels != channels || image->dtype != t->dtype || image->order != t->order)
        return CVY_FAIL(CVY_ERR_DATA, "has %lld channels, its data set has %lld", (long long)image->channels,
                        (long long)channels);
    if (t->to_grey) {
        CVY_TRY(to_grey(image, &work->grey));
        image = &work->grey;
    }
    CVY_TRY(t->is_resized_crop ? resize_window(t, work, &image) : resize_shorter(t, work, &image));
    struct window w = draw_window(t, draw->rng, image);
    copy_window(t, image, &w, out);
    if (is_distorted(t))
        CVY_TRY(distort(t, draw->rng, work, out));
    if (t->random_erase > 0)
        erase(t, draw->rng, out);
    return CVY_OK;
}

/* See statistics.h. An image's sums are integers, or its own doubles; images are added up in their order. */
#include "data/statistics.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_CHANNELS = 4 };

struct item {
    bool is_bad;
    int64_t height, width, label;
    double mean[MAX_CHANNELS], mean_of_squares[MAX_CHANNELS];
};

struct pass {
    struct cvy_statistics *out;
    double squares[MAX_CHANNELS]; /* sum of the images' means of squares */
};

/* Channel c of n pixels, each `step` values behind the other; at most 2^29 pixels: the sums fit. */
static void add_up_bytes(const uint8_t *pixels, int64_t n, int64_t step, double *mean, double *squares) {
    int64_t sum = 0, sum_of_squares = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t x = pixels[i * step];
        sum += x;
        sum_of_squares += x * x;
    }
    *mean = (double)sum / (255.0 * (double)n);
    *squares = (double)sum_of_squares / (255.0 * 255.0 * (double)n);
}

static void add_up_floats(const float *pixels, int64_t n, int64_t step, double *mean, double *squares) {
    double sum = 0, sum_of_squares = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)pixels[i * step];
        sum += x;
        sum_of_squares += x * x;
    }
    *mean = sum / (double)n;
    *squares = sum_of_squares / (double)n;
}

static void look(const struct cvy_dataset *dataset, int64_t i, cvy_status status,
                 const struct cvy_image *image, void *out) {
    struct item *item = out;
    *item = (struct item){.is_bad = status != CVY_OK, .label = -1};
    if (item->is_bad)
        return;
    const int64_t n = image->height * image->width;
    const bool is_planar = image->order == CVY_NCHW;
    item->is_bad = image->channels != dataset->channels || n == 0 ||
                   (!dataset->is_unlabelled && cvy_dataset_label(dataset, i, &item->label) != CVY_OK);
    item->height = image->height;
    item->width = image->width;
    for (int64_t c = 0; !item->is_bad && c < image->channels; c++) {
        const int64_t first = is_planar ? c * n : c, step = is_planar ? 1 : image->channels;
        if (image->dtype == CVY_U8)
            add_up_bytes((const uint8_t *)image->pixels + first, n, step, &item->mean[c],
                         &item->mean_of_squares[c]);
        else
            add_up_floats((const float *)image->pixels + first, n, step, &item->mean[c],
                          &item->mean_of_squares[c]);
    }
}

static void add_size(struct cvy_statistics *out, int64_t height, int64_t width) {
    const int64_t n = height * width;
    int bin = 0;
    for (int64_t side = height < width ? height : width; side > 1 && bin < CVY_N_SIZE_BINS - 1; side /= 2)
        bin++;
    out->shorter_side[bin]++;
    if (out->smallest[0] == 0 || n < out->smallest[0] * out->smallest[1])
        out->smallest[0] = height, out->smallest[1] = width;
    if (n > out->largest[0] * out->largest[1])
        out->largest[0] = height, out->largest[1] = width;
}

static cvy_status tell(void *context, int64_t i, const void *from) {
    struct pass *pass = context;
    const struct item *item = from;
    const struct cvy_survey_progress *progress = &pass->out->progress;
    pass->out->n_bad += item->is_bad;
    if (progress->tell)
        progress->tell(progress->context, i + 1, pass->out->n);
    if (item->is_bad)
        return CVY_OK;
    for (int c = 0; c < MAX_CHANNELS; c++) {
        pass->out->mean[c] += item->mean[c];
        pass->squares[c] += item->mean_of_squares[c];
    }
    add_size(pass->out, item->height, item->width);
    if (item->label >= 0)
        pass->out->per_class[item->label]++;
    return CVY_OK;
}

cvy_status cvy_statistics_take(const struct cvy_dataset *dataset, int n_workers, struct cvy_statistics *out) {
    struct pass pass = {.out = out};
    const struct cvy_survey survey = {
        .item_bytes = sizeof(struct item), .look = look, .tell = tell, .context = &pass};
    out->n = dataset->n;
    out->channels = dataset->channels;
    if (dataset->channels > MAX_CHANNELS)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED,
                        "the images of '%s' have %lld channels, at most %d are supported", dataset->spec,
                        (long long)dataset->channels, MAX_CHANNELS);
    if (dataset->n_classes > 0)
        CVY_TRY(CVY_ALLOC(out->per_class, (size_t)dataset->n_classes));
    CVY_TRY(cvy_survey_run(&survey, dataset, n_workers));
    const int64_t n = out->n - out->n_bad;
    for (int c = 0; c < MAX_CHANNELS && n > 0; c++) {
        out->mean[c] /= (double)n;
        const double variance = pass.squares[c] / (double)n - out->mean[c] * out->mean[c];
        out->std[c] = variance > 0 ? sqrt(variance) : 0;
    }
    return CVY_OK;
}

void cvy_statistics_free(struct cvy_statistics *statistics) {
    free(statistics->per_class);
    statistics->per_class = NULL;
}

/* The way of images into a network's input, beside what decoding alone takes.
 *
 *   usage: loader data=SPEC [NAME=VALUE]…   preset=imagenet crop=224 batch=50 workers=0 rounds=7
 *
 * In alternation, every round:
 *   bare     a loop that reads the files and decodes all of each with libjpeg-turbo, and does nothing with it
 *   loader   an epoch of Convoy's loader with augmentation, each batch converted, normalised and laid out for the CPU
 * Prints images/s of both, medians over the rounds with the lowest and the highest, the median of the rounds' ratios,
 * and what VmRSS grew by from the second epoch to the last. One core, unless workers says otherwise: bind it with
 * taskset. DIR holds JPEG files only, and is read once before, so that the disk does not count. Of data sets that have
 * no file for each image, such as tar:GLOB, only the loader is measured.
 */
#include "base/mem.h"
#include "base/thread.h"
#include "data/data.h"
#include "rt/backend.h"
#include "settings.h"

#include <stdlib.h>

#include <jpeglib.h>

enum { MAX_ROUNDS = 1000 };

static const struct setting DEFAULTS[] = {
    {"data", ""}, {"preset", "imagenet"}, {"crop", "224"}, {"batch", "50"}, {"workers", "0"}, {"rounds", "7"},
};
enum { N_SETTINGS = sizeof DEFAULTS / sizeof *DEFAULTS };

struct buffer {
    unsigned char *bytes;
    size_t capacity;
};

struct bench {
    struct setting settings[N_SETTINGS];
    cvy_dataset *dataset;
    cvy_loader *loader;
    struct cvy_device *device;
    float *input;
    struct buffer file, pixels;
    double bare[MAX_ROUNDS], loaded[MAX_ROUNDS], ratios[MAX_ROUNDS]; /* images/s; loaded / bare */
    double rss_before, rss;                                          /* MB */
};

static const char *get(const struct bench *b, const char *name) {
    return setting_get(b->settings, N_SETTINGS, name);
}

static cvy_status reserve(struct buffer *buffer, size_t n_bytes) {
    if (n_bytes <= buffer->capacity)
        return CVY_OK;
    free(buffer->bytes);
    buffer->bytes = malloc(n_bytes);
    buffer->capacity = buffer->bytes ? n_bytes : 0;
    return buffer->bytes ? CVY_OK : CVY_FAIL(CVY_ERR_MEMORY, "no room for %zu bytes", n_bytes);
}

/* ---- decoding alone ------------------------------------------------------------------------------------ */

static cvy_status read_whole_file(const char *path, struct buffer *out, size_t *n_bytes) {
    FILE *file = fopen(path, "rb");
    long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    cvy_status status = size > 0 ? reserve(out, (size_t)size) : CVY_ERR_IO;
    if (status == CVY_OK) {
        rewind(file);
        *n_bytes = fread(out->bytes, 1, (size_t)size, file);
    }
    if (file)
        fclose(file);
    return status == CVY_OK ? CVY_OK : CVY_FAIL(CVY_ERR_IO, "%s: cannot be read", path);
}

static cvy_status decode(struct bench *b, size_t n_bytes) {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, b->file.bytes, n_bytes);
    jpeg_read_header(&jpeg, TRUE);
    bool is_cmyk = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
    jpeg.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&jpeg);
    size_t row = (size_t)jpeg.output_width * (size_t)jpeg.output_components;
    cvy_status status = reserve(&b->pixels, row * jpeg.output_height);
    while (status == CVY_OK && jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW to = b->pixels.bytes + row * jpeg.output_scanline;
        jpeg_read_scanlines(&jpeg, &to, 1);
    }
    jpeg_destroy_decompress(&jpeg);
    return status;
}

static cvy_status decode_all(struct bench *b) {
    size_t n_bytes;
    for (int64_t i = 0; i < b->dataset->n; i++) {
        CVY_TRY(read_whole_file(b->dataset->format->path(b->dataset, i), &b->file, &n_bytes));
        CVY_TRY(decode(b, n_bytes));
    }
    return CVY_OK;
}

/* ---- the loader ---------------------------------------------------------------------------------------- */

static cvy_status load_all(struct bench *b, int64_t epoch) {
    cvy_batch batch;
    cvy_status status;
    CVY_TRY(cvy_loader_start(b->loader, epoch));
    while ((status = cvy_loader_next(b->loader, &batch)) == CVY_OK) {
        const struct cvy_operand_spec spec = {
            .desc = {CVY_F32, {4, {batch.n, batch.channels, batch.height, batch.width}}}};
        const struct cvy_ingest what = {&batch, 0, batch.n};
        CVY_TRY(b->device->backend->ingest(b->device, &what, &spec, b->input));
    }
    return status == CVY_END ? CVY_OK : status;
}

static cvy_status open_all(struct bench *b) {
    if (!*get(b, "data"))
        return CVY_FAIL(CVY_ERR_USAGE,
                        "say data=folder:DIR or data=tar:GLOB; see the top of the program's source");
    CVY_TRY(cvy_dataset_open(get(b, "data"), CVY_SPLIT_TRAIN, NULL, &b->dataset));
    cvy_loader_options options;
    cvy_loader_defaults(&options);
    options.batch_size = atoll(get(b, "batch"));
    options.workers = atoi(get(b, "workers"));
    options.preset = get(b, "preset");
    options.crop[0] = options.crop[1] = atoll(get(b, "crop"));
    CVY_TRY(cvy_loader_new(b->dataset, &options, &b->loader));
    int64_t channels, height, width;
    cvy_loader_shape(b->loader, &channels, &height, &width);
    size_t n_bytes = (size_t)(options.batch_size * channels * height * width) * sizeof *b->input;
    b->input = aligned_alloc(CVY_ALIGN, cvy_align_up(n_bytes, CVY_ALIGN));
    if (!b->input)
        return CVY_FAIL(CVY_ERR_MEMORY, "no room for a batch of %zu bytes", n_bytes);
    const struct cvy_backend *cpu = cvy_backend_find("cpu");
    const struct cvy_device_spec spec = {.n_threads = 1, .n_local = 1, .conv_algo = "auto"};
    CVY_TRY(cpu->open(&spec, &b->device));
    return cpu->enter(b->device);
}

/* ---- rounds -------------------------------------------------------------------------------------------- */

static cvy_status measure(struct bench *b, int rounds) {
    for (int round = -1; round < rounds; round++) { /* -1: to warm up */
        int64_t start = cvy_now_ns();
        if (b->dataset->format->path)
            CVY_TRY(decode_all(b));
        int64_t middle = cvy_now_ns();
        CVY_TRY(load_all(b, round + 1));
        int64_t end = cvy_now_ns();
        b->rss = process_kib("VmRSS: %lf kB") / 1000;
        if (round <= 0)
            b->rss_before = b->rss;
        if (round < 0)
            continue;
        b->bare[round] = (double)b->dataset->n * 1e9 / (double)(middle - start);
        b->loaded[round] = (double)b->dataset->n * 1e9 / (double)(end - middle);
        b->ratios[round] = b->loaded[round] / b->bare[round];
    }
    return CVY_OK;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const char *what, const char *unit, double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, compare);
    printf("%s median %.3f%s (%.3f to %.3f)\n", what, values[n / 2], unit, values[0], values[n - 1]);
}

int main(int argc, char **argv) {
    struct bench b = {.settings = {{0}}};
    memcpy(b.settings, DEFAULTS, sizeof DEFAULTS);
    cvy_status status = settings_read(b.settings, N_SETTINGS, argc, argv);
    int rounds = atoi(get(&b, "rounds"));
    rounds = rounds < 1 ? 1 : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
    if (status == CVY_OK)
        status = open_all(&b);
    if (status == CVY_OK)
        status = measure(&b, rounds);
    if (status == CVY_OK) {
        printf("%lld files, %d rounds\n", (long long)b.dataset->n, rounds);
        if (b.dataset->format->path)
            print("bare:  ", " images/s", b.bare, rounds);
        print("loader:", " images/s", b.loaded, rounds);
        if (b.dataset->format->path)
            print("ratio: ", "", b.ratios, rounds);
        printf("memory: %.1f MB, %+.1f MB since the second epoch\n", b.rss, b.rss - b.rss_before);
    } else {
        fprintf(stderr, "loader: %s\n", cvy_error());
    }
    if (b.device)
        b.device->backend->close(b.device);
    cvy_loader_free(b.loader);
    cvy_dataset_free(b.dataset);
    free(b.input);
    free(b.file.bytes);
    free(b.pixels.bytes);
    return status == CVY_OK ? 0 : 1;
}

/* The pixels that Convoy makes of image files, for tools/compare_pillow.py.
 *
 *   usage: pixels whole|eval FILE...
 *
 * whole: the decoded file. eval: what a network sees in evaluation by --preset imagenet --crop 224x224, which is the
 * centre of an image whose shorter side was resized to 256, as floats after the normalisation, computed by the formula
 * of cvy_batch. Written to standard output for each file: height and width as int64, then the values, rows of RGB.
 */
#include "data/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 224 };

static void put(int64_t height, int64_t width, const void *values, size_t n_bytes) {
    const int64_t shape[2] = {height, width};
    fwrite(shape, sizeof shape, 1, stdout);
    fwrite(values, n_bytes, 1, stdout);
}

static cvy_status put_whole(const char *const *paths, int64_t n) {
    struct cvy_image image = {0};
    cvy_status status = CVY_OK;
    for (int64_t i = 0; i < n && status == CVY_OK; i++) {
        status = cvy_decode_file(paths[i], false, NULL, &image);
        if (status == CVY_OK)
            put(image.height, image.width, image.pixels, (size_t)(3 * image.height * image.width));
    }
    cvy_image_free(&image);
    return status;
}

static void put_normalised(const cvy_batch *batch) {
    static float values[SIDE * SIDE * 3];
    const uint8_t *pixels = batch->images;
    for (int64_t i = 0; i < batch->n; i++) {
        for (int64_t k = 0; k < SIDE * SIDE * 3; k++, pixels++)
            values[k] = ((float)*pixels / 255 - batch->mean[k % 3]) / batch->std[k % 3];
        put(SIDE, SIDE, values, sizeof values);
    }
}

static cvy_status put_eval(const char *const *paths, int64_t n) {
    cvy_loader_options options;
    cvy_dataset *dataset = NULL;
    cvy_loader *loader = NULL;
    cvy_batch batch;
    cvy_status status;
    cvy_loader_defaults(&options);
    options.shuffle = options.augment = false;
    options.preset = "imagenet";
    options.crop[0] = options.crop[1] = SIDE;
    CVY_TRY_OUT(cvy_dataset_open_files(paths, n, &dataset));
    CVY_TRY_OUT(cvy_loader_new(dataset, &options, &loader));
    CVY_TRY_OUT(cvy_loader_start(loader, 0));
    while ((status = cvy_loader_next(loader, &batch)) == CVY_OK)
        put_normalised(&batch);
    status = status == CVY_END ? CVY_OK : status;
out:
    cvy_loader_free(loader);
    cvy_dataset_free(dataset);
    return status;
}

int main(int argc, char **argv) {
    const char *const *paths = (const char *const *)argv + 2;
    cvy_status status;
    if (argc < 3 || (strcmp(argv[1], "whole") != 0 && strcmp(argv[1], "eval") != 0)) {
        fprintf(stderr, "usage: pixels whole|eval FILE...\n");
        return 2;
    }
    status = argv[1][0] == 'w' ? put_whole(paths, argc - 2) : put_eval(paths, argc - 2);
    if (status != CVY_OK)
        fprintf(stderr, "%s\n", cvy_error());
    return status != CVY_OK || fflush(stdout) != 0;
}

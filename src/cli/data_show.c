/* convoy data show: a contact sheet of training images as the network gets them, so that people can look. */
#include "base/file.h"
#include "cli/command.h"
#include "data/data.h"
#include "data/encode_png.h"
#include "data/picture.h"
#include "data/sheet.h"

#include <stdio.h>
#include <stdlib.h>

static cvy_status draw(const cvy_dataset *data, const cvy_batch *batch, int64_t columns,
                       struct cvy_sheet *sheet) {
    uint8_t *rgb;
    CVY_TRY(cvy_sheet_new(batch->n, columns, batch->height, batch->width, sheet));
    CVY_TRY(CVY_ALLOC(rgb, (size_t)(3 * batch->height * batch->width)));
    for (int64_t i = 0; i < batch->n; i++) {
        cvy_picture_rgb(batch, i, rgb);
        cvy_sheet_put(sheet, i, rgb, cvy_dataset_class_name(data, batch->labels[i]));
    }
    free(rgb);
    return CVY_OK;
}

static cvy_status write_png(const struct cvy_image *image, const char *path) {
    void *bytes;
    size_t n_bytes;
    CVY_TRY(cvy_encode_png(image, &bytes, &n_bytes));
    cvy_status status = cvy_write_file(path, bytes, n_bytes);
    free(bytes);
    return status;
}

static cvy_status show(const char *spec, const struct options *o, const cvy_log_sink *log) {
    cvy_dataset *data = NULL;
    cvy_loader *loader = NULL;
    cvy_loader_options options;
    cvy_batch batch;
    struct cvy_sheet sheet = {.columns = 0};
    cvy_status status;
    CVY_TRY_OUT(cvy_dataset_open(spec, CVY_SPLIT_TRAIN, log, &data));
    data->as_stored = o->exif == 0;
    CVY_TRY_OUT(options_loader(o, &options));
    options.batch_size = o->columns * o->rows < data->n ? o->columns * o->rows : data->n;
    CVY_TRY_OUT(cvy_loader_new(data, &options, &loader));
    CVY_TRY_OUT(cvy_loader_start(loader, o->epoch));
    CVY_TRY_OUT(cvy_loader_next(loader, &batch));
    CVY_TRY_OUT(draw(data, &batch, o->columns, &sheet));
    CVY_TRY_OUT(write_png(&sheet.image, o->out));
    printf("%s: %lld of %lld training images, as epoch %lld begins\n", o->out, (long long)batch.n,
           (long long)data->n, (long long)o->epoch + 1);
out:
    cvy_image_free(&sheet.image);
    cvy_loader_free(loader);
    cvy_dataset_free(data);
    return status;
}

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    const struct options *o = values->options;
    if (values->rest.n != 1 || !o->out)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "name a data set and a file, as in `convoy data show folder:DIR --out sheet.png`");
    return show(values->rest.data[0], o, log);
}

static const struct flag show_flags[] = {
    {.name = "out",
     .type = FLAG_TEXT,
     .offset = offsetof(struct options, out),
     .help = "the sheet, a PNG file; one that is there is written over",
     .value_name = "FILE"},
    {.name = "columns",
     .type = FLAG_INT,
     .offset = offsetof(struct options, columns),
     .help = "images beside each other",
     .initial = "8",
     .min = 1,
     .max = 50},
    {.name = "rows",
     .type = FLAG_INT,
     .offset = offsetof(struct options, rows),
     .help = "images below each other",
     .initial = "6",
     .min = 1,
     .max = 50},
    {.name = "at-epoch",
     .type = FLAG_INT,
     .offset = offsetof(struct options, epoch),
     .help = "epoch whose first images are shown, from 0",
     .initial = "0",
     .min = 0,
     .max = 1 << 24},
    {.name = "shuffle",
     .type = FLAG_SWITCH,
     .offset = offsetof(struct options, shuffle),
     .help = "in the epoch's order; --no-shuffle: as the images lie",
     .initial = "true"},
};
static const struct flag_group group_show = {
    .title = "Sheet", .flags = show_flags, .n = sizeof show_flags / sizeof show_flags[0]};

static const struct flag_group *const groups[] = {&group_show, &group_prepare, &group_augment,
                                                  &group_seed, &group_common,  NULL};

const struct command command_data_show = {
    .name = "data show",
    .usage = "SPEC --out FILE [flags]",
    .help = "draw a contact sheet of training images as they are augmented",
    .groups = groups,
    .run = run,
};

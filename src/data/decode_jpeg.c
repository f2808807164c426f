/* JPEG by libjpeg: baseline and progressive; grey, YCbCr, RGB, CMYK and YCCK.
   libjpeg reports errors by calling back, and must not return from there: we leave it by longjmp. Between
   setjmp and longjmp nothing is acquired but what libjpeg itself releases in jpeg_destroy_decompress. */
#include "data/decode.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h> /* after jpeglib.h, which it needs */

enum { MAX_SCANS = 500 }; /* a progressive file may repeat scans for ever; real ones have about ten */

struct reader {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    cvy_status status;
    char message[JMSG_LENGTH_MAX];
};

static _Noreturn void leave(struct reader *reader) {
    reader->errors.format_message((j_common_ptr)&reader->jpeg, reader->message);
    longjmp(reader->escape, 1);
}

static void on_error(j_common_ptr jpeg) { leave(jpeg->client_data); }

/* Warnings are level -1. A file that ends too early is an error, although libjpeg would fill it up with grey;
   oddities that lose no pixels pass, as they do in Pillow. */
static void on_message(j_common_ptr jpeg, int level) {
    if (level < 0 && jpeg->err->msg_code == JWRN_JPEG_EOF)
        leave(jpeg->client_data);
}

static void on_progress(j_common_ptr common) {
    struct reader *reader = common->client_data;
    if (reader->jpeg.input_scan_number <= MAX_SCANS)
        return;
    snprintf(reader->message, sizeof reader->message, "more than %d scans", MAX_SCANS);
    longjmp(reader->escape, 1);
}

/* a b / 255, rounded, for bytes. */
static unsigned scale_255(unsigned a, unsigned b) {
    unsigned t = a * b + 128;
    return (t + (t >> 8)) >> 8;
}

/* Files hold CMYK inverted, as Adobe writes it: `ink` is 255 - C, 255 - M, 255 - Y, 255 - K.
   R = K' - C K' / 255 with K' = 255 - K, as Pillow has it. */
static void cmyk_to_rgb(const JSAMPLE *ink, int64_t width, uint8_t *rgb) {
    for (int64_t x = 0; x < width; x++) {
        unsigned light = ink[4 * x + 3];
        for (int c = 0; c < 3; c++)
            rgb[3 * x + c] = (uint8_t)(light - scale_255(255u - ink[4 * x + c], light));
    }
}

static void read_rows(struct reader *reader, struct cvy_image *image) {
    j_decompress_ptr jpeg = &reader->jpeg;
    JSAMPARRAY ink = NULL;
    if (jpeg->out_color_space == JCS_CMYK)
        ink = jpeg->mem->alloc_sarray((j_common_ptr)jpeg, JPOOL_IMAGE, 4 * jpeg->output_width, 1);
    while (jpeg->output_scanline < jpeg->output_height) {
        uint8_t *row = (uint8_t *)image->pixels + (size_t)jpeg->output_scanline * (size_t)image->width * 3;
        if (ink) {
            jpeg_read_scanlines(jpeg, ink, 1);
            cmyk_to_rgb(ink[0], image->width, row);
        } else {
            jpeg_read_scanlines(jpeg, &row, 1);
        }
    }
}

static void read_image(struct reader *reader, const void *bytes, size_t n_bytes, int64_t max_pixels,
                       struct cvy_image *image) {
    j_decompress_ptr jpeg = &reader->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg->progress = &reader->progress;
    jpeg_mem_src(jpeg, bytes, n_bytes);
    jpeg_read_header(jpeg, TRUE);
    bool is_cmyk = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
    jpeg->out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
    reader->status = cvy_decode_reserve(jpeg->image_width, jpeg->image_height, max_pixels, image);
    if (reader->status != CVY_OK)
        return;
    jpeg_start_decompress(jpeg);
    read_rows(reader, image);
}

cvy_status cvy_decode_jpeg(const void *bytes, size_t n_bytes, int64_t max_pixels, struct cvy_image *image) {
    struct reader reader = {.progress.progress_monitor = on_progress};
    reader.jpeg.err = jpeg_std_error(&reader.errors);
    reader.jpeg.client_data = &reader;
    reader.errors.error_exit = on_error;
    reader.errors.emit_message = on_message;
    if (setjmp(reader.escape) == 0)
        read_image(&reader, bytes, n_bytes, max_pixels, image);
    else
        reader.status = CVY_FAIL(CVY_ERR_DATA, "is not a whole JPEG image: %s", reader.message);
    jpeg_destroy_decompress(&reader.jpeg);
    return reader.status;
}

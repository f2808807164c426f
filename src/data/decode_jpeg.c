/* JPEG by libjpeg: baseline and progressive; grey, YCbCr, RGB, CMYK and YCCK; with its exact integer IDCT (islow) and
   smooth upsampling of colours, as Pillow has them.
   libjpeg reports errors by calling back, and must not return from there: we leave it by longjmp. Between
   setjmp and longjmp nothing is acquired but what libjpeg itself releases in jpeg_destroy_decompress. */
#include "data/decode.h"

#include "data/exif.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h> /* after jpeglib.h, which it needs */

enum { MAX_MARGIN = 128 }; /* columns decoded on the left of a part */
enum { MAX_SCANS = 500 };  /* a progressive file may repeat scans for ever; real ones have about ten */

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

/* The next row, at columns left .. left + width - 1 of what libjpeg gives, to RGB. */
static void read_row(struct reader *reader, JSAMPARRAY line, int64_t left, int64_t width, uint8_t *rgb) {
    j_decompress_ptr jpeg = &reader->jpeg;
    jpeg_read_scanlines(jpeg, line, 1);
    const JSAMPLE *from = line[0] + left * jpeg->out_color_components;
    if (jpeg->out_color_space == JCS_CMYK)
        cmyk_to_rgb(from, width, rgb);
    else if (from != rgb)
        memcpy(rgb, from, (size_t)width * 3);
}

/* The same without the copy, for rows in the middle of an image: what hangs over on the right will be overwritten, what
   does so on the left is put back. */
static void read_row_in_place(struct reader *reader, int64_t left, uint8_t *rgb) {
    uint8_t before[MAX_MARGIN * 3];
    uint8_t *row = rgb - left * 3;
    memcpy(before, row, (size_t)left * 3);
    jpeg_read_scanlines(&reader->jpeg, &row, 1);
    memcpy(row, before, (size_t)left * 3);
}

static JSAMPARRAY new_line(j_decompress_ptr jpeg) {
    JDIMENSION n = jpeg->output_width * (JDIMENSION)jpeg->out_color_components;
    return jpeg->mem->alloc_sarray((j_common_ptr)jpeg, JPOOL_IMAGE, n, 1);
}

/* CVY_OK: the header is read, and the size is allowed. */
static cvy_status read_header(struct reader *reader, const void *bytes, size_t n_bytes, int64_t max_pixels) {
    j_decompress_ptr jpeg = &reader->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg->progress = &reader->progress;
    jpeg_mem_src(jpeg, bytes, n_bytes);
    jpeg_read_header(jpeg, TRUE);
    bool is_cmyk = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
    jpeg->out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
    return cvy_decode_check(jpeg->image_width, jpeg->image_height, max_pixels);
}

/* ---- the whole, or a part ------------------------------------------------------------------------------ */

struct request {
    const void *bytes;
    size_t n_bytes;
    int64_t max_pixels;
    int orientation;
    const struct cvy_image_part *part; /* NULL: the whole, as it lies */
    struct cvy_box box;                /* that was chosen, of the upright image */
    bool is_doubtful; /* the file may be cut off behind the part: then only the whole tells */
};

static cvy_status read_whole(struct reader *reader, struct request *request, struct cvy_image *image) {
    j_decompress_ptr jpeg = &reader->jpeg;
    CVY_TRY(read_header(reader, request->bytes, request->n_bytes, request->max_pixels));
    CVY_TRY(cvy_image_reshape(image, 3, jpeg->image_height, jpeg->image_width, CVY_U8, CVY_NHWC));
    jpeg_start_decompress(jpeg);
    JSAMPARRAY line = jpeg->out_color_space == JCS_CMYK ? new_line(jpeg) : NULL;
    uint8_t *row = image->pixels;
    for (int64_t y = 0; y < image->height; y++, row += image->width * 3)
        read_row(reader, line ? line : &row, 0, image->width, row);
    return CVY_OK;
}

/* The largest of 1, 2, 4 and 8 whose fraction of the box is still as large as is asked for. Between them nothing is
   faster than to decode at full size. */
static unsigned shrinking(const struct cvy_box *box, const struct cvy_image_part *part) {
    unsigned by = 1;
    while (by < 8 && box->height / (2 * by) >= part->height && box->width / (2 * by) >= part->width)
        by *= 2;
    return by;
}

static struct cvy_box shrink(const struct cvy_box *box, int64_t by) {
    struct cvy_box small = {.top = box->top / by, .left = box->left / by};
    small.height = (box->top + box->height) / by - small.top;
    small.width = (box->left + box->width) / by - small.left;
    return small;
}

#define END "\xFF\xD9"

/* Does it go on to its end? What is coded has no end mark within. */
static bool has_end(j_decompress_ptr jpeg) {
    const JOCTET *at = jpeg->src->next_input_byte;
    const size_t n = jpeg->src->bytes_in_buffer;
    if (jpeg_input_complete(jpeg) || jpeg->unread_marker == JPEG_EOI)
        return true;
    return n >= 2 && (memcmp(at + n - 2, END, 2) == 0 || memmem(at, n, END, 2));
}

static void read_box(struct reader *reader, const struct cvy_box *box, struct cvy_image *image) {
    j_decompress_ptr jpeg = &reader->jpeg;
    /* Upsampling at the edge of a crop lacks its neighbours: one sample of all colours more on either side. */
    int64_t margin = (int64_t)jpeg->max_h_samp_factor, end = box->left + box->width + margin;
    JDIMENSION left = (JDIMENSION)(box->left > margin ? box->left - margin : 0);
    JDIMENSION width = (JDIMENSION)(end < jpeg->output_width ? end : jpeg->output_width) - left;
    jpeg_crop_scanline(jpeg, &left, &width);
    JSAMPARRAY line = new_line(jpeg);
    uint8_t *row = image->pixels;
    if (box->top > 0)
        jpeg_skip_scanlines(jpeg, (JDIMENSION)box->top);
    const int64_t over_left = box->left - (int64_t)left, over = (int64_t)jpeg->output_width - box->width;
    const bool is_rgb = jpeg->out_color_space == JCS_RGB && over_left <= MAX_MARGIN;
    for (int64_t y = 0; y < box->height; y++, row += box->width * 3) {
        if (is_rgb && y * box->width >= over_left && (box->height - y) * box->width >= box->width + over)
            read_row_in_place(reader, over_left, row);
        else
            read_row(reader, line, over_left, box->width, row);
    }
}

static cvy_status read_part(struct reader *reader, struct request *request, struct cvy_image *image) {
    j_decompress_ptr jpeg = &reader->jpeg;
    CVY_TRY(read_header(reader, request->bytes, request->n_bytes, request->max_pixels));
    const int64_t height = jpeg->image_height, width = jpeg->image_width;
    const bool is_swapped = cvy_orient_swaps(request->orientation);
    const struct cvy_image_part *part = request->part;
    request->box = part->choose(part->context, is_swapped ? width : height, is_swapped ? height : width);
    unsigned by = shrinking(&request->box, part);
    struct cvy_box box = cvy_orient_back(&request->box, request->orientation, height, width);
    box = shrink(&box, by);
    CVY_TRY(cvy_image_reshape(image, 3, box.height, box.width, CVY_U8, CVY_NHWC));
    jpeg->scale_denom = by;
    jpeg_start_decompress(jpeg);
    read_box(reader, &box, image);
    request->is_doubtful = !has_end(jpeg);
    return CVY_OK;
}

static cvy_status decode(struct request *request, struct cvy_image *image) {
    struct reader reader = {.progress.progress_monitor = on_progress};
    reader.jpeg.err = jpeg_std_error(&reader.errors);
    reader.jpeg.client_data = &reader;
    reader.errors.error_exit = on_error;
    reader.errors.emit_message = on_message;
    if (setjmp(reader.escape) == 0)
        reader.status = (request->part ? read_part : read_whole)(&reader, request, image);
    else
        reader.status = CVY_FAIL(CVY_ERR_DATA, "is not a whole JPEG image: %s", reader.message);
    jpeg_destroy_decompress(&reader.jpeg);
    return reader.status;
}

cvy_status cvy_decode_jpeg(const void *bytes, size_t n_bytes, int64_t max_pixels, struct cvy_image *image) {
    struct request request = {.bytes = bytes, .n_bytes = n_bytes, .max_pixels = max_pixels};
    return decode(&request, image);
}

cvy_status cvy_decode_jpeg_part(const void *bytes, size_t n_bytes, int64_t max_pixels, int orientation,
                                const struct cvy_image_part *part, struct cvy_image *image) {
    struct request request = {.bytes = bytes,
                              .n_bytes = n_bytes,
                              .max_pixels = max_pixels,
                              .orientation = orientation,
                              .part = part};
    CVY_TRY(decode(&request, image));
    if (!request.is_doubtful) {
        CVY_TRY(cvy_orient(image, orientation));
        return CVY_OK;
    }
    CVY_TRY(cvy_decode_jpeg(bytes, n_bytes, max_pixels, image));
    CVY_TRY(cvy_orient(image, orientation));
    cvy_image_crop(image, &request.box);
    return CVY_OK;
}

/* By libjpeg, which reports errors by calling back: we leave it by longjmp. */
#include "data/encode_jpeg.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h> /* after stdio.h, which it needs */

struct encoder {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf escape;
    char message[JMSG_LENGTH_MAX];
    unsigned char *bytes; /* libjpeg's buffer, from malloc */
    unsigned long n_bytes;
    cvy_status status;
};

static void on_error(j_common_ptr jpeg) {
    struct encoder *encoder = jpeg->client_data;
    jpeg->err->format_message(jpeg, encoder->message);
    longjmp(encoder->escape, 1);
}

static void encode(struct encoder *encoder, const struct cvy_image *image, int quality) {
    j_compress_ptr jpeg = &encoder->jpeg;
    jpeg_create_compress(jpeg);
    jpeg_mem_dest(jpeg, &encoder->bytes, &encoder->n_bytes);
    jpeg->image_width = (JDIMENSION)image->width;
    jpeg->image_height = (JDIMENSION)image->height;
    jpeg->input_components = 3;
    jpeg->in_color_space = JCS_RGB;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, quality, TRUE);
    jpeg_start_compress(jpeg, TRUE);
    while (jpeg->next_scanline < jpeg->image_height) {
        JSAMPROW row = (uint8_t *)image->pixels + (size_t)jpeg->next_scanline * (size_t)image->width * 3;
        jpeg_write_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_compress(jpeg);
}

cvy_status cvy_encode_jpeg(const struct cvy_image *image, int quality, unsigned char **out, size_t *n_bytes) {
    struct encoder *encoder = calloc(1, sizeof *encoder); /* beyond what longjmp may spoil */
    if (!encoder)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for an encoder");
    encoder->jpeg.err = jpeg_std_error(&encoder->errors);
    encoder->jpeg.client_data = encoder;
    encoder->errors.error_exit = on_error;
    if (setjmp(encoder->escape) == 0)
        encode(encoder, image, quality);
    else
        encoder->status = CVY_FAIL(CVY_ERR_FAILED, "cannot be written as JPEG: %s", encoder->message);
    jpeg_destroy_compress(&encoder->jpeg);
    cvy_status status = encoder->status;
    if (status == CVY_OK) {
        *out = encoder->bytes;
        *n_bytes = encoder->n_bytes;
    } else {
        free(encoder->bytes);
    }
    free(encoder);
    return status;
}

/* Parts of images: the same pixels as when they are cut out of the whole, however a file is coded. */
#include "data/exif.h"
#include "data/part_fixture.h"

#include <jpeglib.h>

enum { HEIGHT = 203, WIDTH = 331, N_BOXES = 40, QUALITY = 85 };

/* ---- files --------------------------------------------------------------------------------------------- */

struct coding {
    const char *name;
    int components, h, v; /* sampling factors of the first component */
    bool is_progressive, is_cmyk;
    unsigned restart; /* MCUs from one restart mark to the next */
};

static const struct coding codings[] = {
    {"4:4:4", 3, 1, 1, false, false, 0},
    {"4:2:2", 3, 2, 1, false, false, 0},
    {"4:2:0", 3, 2, 2, false, false, 0},
    {"4:4:0", 3, 1, 2, false, false, 0},
    {"4:1:1", 3, 4, 1, false, false, 0},
    {"grey", 1, 1, 1, false, false, 0},
    {"cmyk", 4, 1, 1, false, true, 0},
    {"4:2:0 progressive", 3, 2, 2, true, false, 0},
    {"4:2:0 with restarts", 3, 2, 2, false, false, 7},
};
enum { N_CODINGS = sizeof codings / sizeof *codings };

/* Smooth ground with noise, so that blocks differ and neighbours matter. */
static void fill_line(int64_t y, int components, JSAMPLE *line, struct cvy_rng *rng) {
    for (int64_t x = 0; x < WIDTH; x++) {
        for (int c = 0; c < components; c++)
            line[x * components + c] =
                (JSAMPLE)((x * (c + 1) / 2 + y * (3 - c)) % 192 + cvy_rng_below(rng, 64));
    }
}

static unsigned char *encode(const struct coding *coding, unsigned long *n_bytes) {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    JSAMPLE line[WIDTH * 4], *row = line;
    unsigned char *bytes = NULL;
    struct cvy_rng rng;
    cvy_rng_init(&rng, 7, CVY_RNG_AUGMENT, 0, 0);
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &bytes, n_bytes);
    jpeg.image_height = HEIGHT;
    jpeg.image_width = WIDTH;
    jpeg.input_components = coding->components;
    jpeg.in_color_space = coding->is_cmyk ? JCS_CMYK : coding->components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, QUALITY, TRUE);
    jpeg.comp_info[0].h_samp_factor = coding->h;
    jpeg.comp_info[0].v_samp_factor = coding->v;
    jpeg.restart_interval = coding->restart;
    if (coding->is_progressive)
        jpeg_simple_progression(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    for (int64_t y = 0; y < HEIGHT; y++) {
        fill_line(y, coding->components, line, &rng);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    return bytes;
}

/* ---- parts --------------------------------------------------------------------------------------------- */

/* At full size, turned in each way. */
static void check_coding(const struct coding *coding, int orientation) {
    struct cvy_image whole = {0}, cut = {0}, got = {0};
    unsigned long n_bytes = 0;
    unsigned char *bytes = encode(coding, &n_bytes);
    struct cvy_rng rng;
    cvy_rng_init(&rng, 3, CVY_RNG_AUGMENT, (uint64_t)orientation, 0);
    assert_int_equal(cvy_decode_jpeg(bytes, n_bytes, CVY_MAX_PIXELS, &whole), CVY_OK);
    assert_int_equal(cvy_orient(&whole, orientation), CVY_OK);
    for (int k = 0; k < N_BOXES; k++) {
        struct choice choice = {.box = draw_box(&rng, whole.height, whole.width)};
        struct cvy_image_part part = {choose, &choice, choice.box.height, choice.box.width};
        size_t n = (size_t)(3 * whole.height * whole.width);
        assert_int_equal(cvy_decode_jpeg_part(bytes, n_bytes, CVY_MAX_PIXELS, orientation, &part, &got),
                         CVY_OK);
        assert_int_equal(choice.n_calls, 1);
        assert_int_equal(cvy_image_reshape(&cut, 3, whole.height, whole.width, CVY_U8, CVY_NHWC), CVY_OK);
        memcpy(cut.pixels, whole.pixels, n);
        cvy_image_crop(&cut, &choice.box);
        assert_same(&got, &cut, coding->name, &choice.box);
    }
    cvy_image_free(&whole);
    cvy_image_free(&cut);
    cvy_image_free(&got);
    free(bytes);
}

static void parts_are_cut_out_of_the_whole(void **state) {
    (void)state;
    for (int k = 0; k < N_CODINGS; k++)
        check_coding(&codings[k], 1 + k % 8);
    for (int orientation = 1; orientation <= 8; orientation++)
        check_coding(&codings[2], orientation);
}

/* A fraction is near the mean of the pixels that it stands for: libjpeg scales blocks of 8x8 by themselves. */
static void large_parts_come_smaller(void **state) {
    (void)state;
    struct cvy_image whole = {0}, got = {0};
    unsigned long n_bytes = 0;
    unsigned char *bytes = encode(&codings[0], &n_bytes);
    struct choice choice = {.box = {.top = 5, .left = 17, .height = 190, .width = 300}};
    static const struct size {
        int64_t height, width, shrunk_by;
    } sizes[] = {{96, 100, 1}, {90, 151, 1}, {95, 150, 2}, {48, 60, 2}, {47, 75, 4}, {23, 37, 8}, {1, 1, 8}};
    assert_int_equal(cvy_decode_jpeg(bytes, n_bytes, CVY_MAX_PIXELS, &whole), CVY_OK);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const int64_t by = sizes[k].shrunk_by;
        struct cvy_image_part part = {choose, &choice, sizes[k].height, sizes[k].width};
        double off = 0;
        assert_int_equal(cvy_decode_jpeg_part(bytes, n_bytes, CVY_MAX_PIXELS, 1, &part, &got), CVY_OK);
        assert_int_equal(got.height, (5 + 190) / by - 5 / by);
        assert_int_equal(got.width, (17 + 300) / by - 17 / by);
        for (int64_t i = 0; i < 3 * got.height * got.width; i++) {
            int64_t y = (5 / by + i / 3 / got.width) * by, x = (17 / by + i / 3 % got.width) * by, sum = 0;
            for (int64_t j = 0; j < by * by; j++)
                sum += ((uint8_t *)whole.pixels)[((y + j / by) * WIDTH + x + j % by) * 3 + i % 3];
            off += abs(((uint8_t *)got.pixels)[i] - (int)(sum / (by * by)));
        }
        assert_true(off / (double)(3 * got.height * got.width) < (by == 1 ? 1e-9 : 3));
    }
    cvy_image_free(&whole);
    cvy_image_free(&got);
    free(bytes);
}

/* A file that is cut off fails wherever the part lies, as the whole does, whatever was drawn. */
static void cut_files_fail_for_any_part(void **state) {
    (void)state;
    struct cvy_image image = {0};
    for (int k = 0; k < N_CODINGS; k++) {
        unsigned long n_bytes = 0;
        unsigned char *bytes = encode(&codings[k], &n_bytes);
        for (unsigned long n = n_bytes / 10; n <= n_bytes; n += n_bytes / 10) {
            struct choice choice = {.box = {0, 0, 9, 9}};
            struct cvy_image_part part = {choose, &choice, 9, 9};
            cvy_status whole = cvy_decode(bytes, n, CVY_MAX_PIXELS, false, NULL, &image);
            assert_int_equal(cvy_decode(bytes, n, CVY_MAX_PIXELS, false, &part, &image), whole);
            assert_true(choice.n_calls <= 1);
        }
        assert_int_equal(cvy_decode(bytes, n_bytes / 2, CVY_MAX_PIXELS, false, NULL, &image), CVY_ERR_DATA);
        free(bytes);
    }
    cvy_image_free(&image);
}

/* Formats that know no parts. */
static void others_are_cut_too(void **state) {
    (void)state;
    struct cvy_image whole = {0}, got = {0};
    struct choice choice = {.box = {.top = 3, .left = 5, .height = 7, .width = 11}};
    struct cvy_image_part part = {choose, &choice, 1, 1};
    static const char *const paths[] = {"tests/data/images/rgb.png", "tests/data/images/lossy.webp"};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(cvy_decode_file(paths[k], false, NULL, &whole), CVY_OK);
        assert_int_equal(cvy_decode_file(paths[k], false, &part, &got), CVY_OK);
        cvy_image_crop(&whole, &choice.box);
        assert_same(&got, &whole, paths[k], &choice.box);
    }
    cvy_image_free(&whole);
    cvy_image_free(&got);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_cut_out_of_the_whole),
        cmocka_unit_test(large_parts_come_smaller),
        cmocka_unit_test(cut_files_fail_for_any_part),
        cmocka_unit_test(others_are_cut_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

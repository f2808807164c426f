/* Parts of WebP images: the same pixels as when they are cut out of the whole, however a file is coded, and no part of
   a file that is cut off. */
#include "data/exif.h"
#include "data/part_fixture.h"

#include <webp/encode.h>

enum { HEIGHT = 77, WIDTH = 131, N_BOXES = 32 };

struct coding {
    const char *name;
    float quality;
    int lossless, filter_type, filter_strength, partitions, has_alpha;
};

static const struct coding codings[] = {
    {"lossy", 75, 0, 1, 60, 0, 0},
    {"lossy, coarse", 5, 0, 1, 100, 0, 0},
    {"lossy, simple filter", 40, 0, 0, 80, 0, 0},
    {"lossy, no filter", 90, 0, 1, 0, 0, 0},
    {"lossy, 8 partitions", 75, 0, 1, 60, 3, 0},
    {"lossy with alpha", 75, 0, 1, 60, 0, 1},
    {"lossless", 75, 1, 0, 0, 0, 0},
    {"lossless with alpha", 75, 1, 0, 0, 0, 1},
};
enum { N_CODINGS = sizeof codings / sizeof *codings };

/* Smooth ground with noise, and colours that change from pixel to pixel. */
static void fill(uint8_t rgba[HEIGHT * WIDTH * 4], const struct coding *coding) {
    struct cvy_rng rng;
    cvy_rng_init(&rng, 7, CVY_RNG_TEST, 0, 0);
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++) {
            uint8_t *pixel = rgba + (y * WIDTH + x) * 4;
            for (int c = 0; c < 3; c++)
                pixel[c] = (uint8_t)((x * (c + 1) / 2 + y * (3 - c)) % 192 + (int)cvy_rng_below(&rng, 64));
            pixel[3] = (uint8_t)(coding->has_alpha ? x + y : 255);
        }
    }
}

static void encode(const struct coding *coding, WebPMemoryWriter *out) {
    static uint8_t rgba[HEIGHT * WIDTH * 4];
    WebPConfig config;
    WebPPicture picture;
    assert_true(WebPConfigInit(&config) && WebPPictureInit(&picture));
    config.quality = coding->quality;
    config.lossless = coding->lossless;
    config.filter_type = coding->filter_type;
    config.filter_strength = coding->filter_strength;
    config.partitions = coding->partitions;
    fill(rgba, coding);
    picture.use_argb = coding->lossless;
    picture.width = WIDTH;
    picture.height = HEIGHT;
    WebPMemoryWriterInit(out);
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = out;
    assert_true(WebPPictureImportRGBA(&picture, rgba, WIDTH * 4));
    assert_true(WebPEncode(&config, &picture));
    WebPPictureFree(&picture);
}

static void parts_are_cut_out_of_the_whole(void **state) {
    (void)state;
    struct cvy_image whole = {0}, got = {0};
    struct cvy_rng rng;
    cvy_rng_init(&rng, 3, CVY_RNG_TEST, 0, 0);
    for (int c = 0; c < N_CODINGS; c++) {
        WebPMemoryWriter file;
        encode(&codings[c], &file);
        for (int k = 0; k < N_BOXES; k++) {
            const int orientation = 1 + k % 8;
            struct choice choice;
            assert_int_equal(cvy_decode_webp(file.mem, file.size, CVY_MAX_PIXELS, &whole), CVY_OK);
            assert_int_equal(cvy_orient(&whole, orientation), CVY_OK);
            choice = (struct choice){.box = draw_box(&rng, whole.height, whole.width)};
            const struct cvy_image_part part = {choose, &choice, 1, 1};
            assert_int_equal(
                cvy_decode_webp_part(file.mem, file.size, CVY_MAX_PIXELS, orientation, &part, &got), CVY_OK);
            assert_int_equal(choice.n_calls, 1);
            cvy_image_crop(&whole, &choice.box);
            assert_same(&got, &whole, codings[c].name, &choice.box);
        }
        WebPMemoryWriterClear(&file);
    }
    cvy_image_free(&whole);
    cvy_image_free(&got);
}

/* The part lies at the top, far from what is missing. */
static void cut_files_fail_for_any_part(void **state) {
    (void)state;
    struct cvy_image image = {0};
    for (int c = 0; c < N_CODINGS; c++) {
        WebPMemoryWriter file;
        encode(&codings[c], &file);
        for (size_t n = file.size - 1; n > 0; n -= n / 20 + 1) {
            struct choice choice = {.box = {0, 0, 9, 9}};
            const struct cvy_image_part part = {choose, &choice, 9, 9};
            uint8_t *bytes = malloc(n); /* no byte more, for the sanitizer */
            assert_non_null(bytes);
            memcpy(bytes, file.mem, n);
            assert_int_equal(cvy_decode(bytes, n, CVY_MAX_PIXELS, false, &part, &image), CVY_ERR_DATA);
            free(bytes);
        }
        WebPMemoryWriterClear(&file);
    }
    cvy_image_free(&image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_cut_out_of_the_whole),
        cmocka_unit_test(cut_files_fail_for_any_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Distortions against torchvision's on Pillow images, level by level: tests/golden/distortions.safetensors, made by
   tools/make_golden_transforms.py, whose tensors have names such as "Rotate -27". */
#include "data/distort.h"
#include "graph/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void load(const struct cvy_safetensors *file, const char *name, struct cvy_image *image) {
    struct cvy_desc desc;
    const void *bytes;
    assert_int_equal(cvy_safetensors_find(file, name, &desc, &bytes), CVY_OK);
    assert_true(desc.dtype == CVY_U8 && desc.shape.n == 3 && desc.shape.dim[2] == 3);
    assert_int_equal(cvy_image_reshape(image, 3, desc.shape.dim[0], desc.shape.dim[1], CVY_U8, CVY_NHWC),
                     CVY_OK);
    memcpy(image->pixels, bytes, (size_t)(3 * image->height * image->width));
}

static void distorts_as_torchvision_does(void **state) {
    (void)state;
    struct cvy_safetensors *file;
    struct cvy_image image = {0}, spare = {0}, want = {0};
    int n = 0, n_bad = 0;
    assert_int_equal(cvy_safetensors_open("tests/golden/distortions.safetensors", &file), CVY_OK);
    for (size_t i = 0; i < cvy_safetensors_count(file); i++) {
        const char *title = cvy_safetensors_name(file, i);
        char name[32];
        double amount;
        if (sscanf(title, "%31s %lf", name, &amount) != 2)
            continue;
        const struct cvy_distortion *distortion = cvy_distortion_find(name);
        assert_non_null(distortion);
        load(file, "input", &image);
        load(file, title, &want);
        assert_int_equal(distortion->apply(&image, &spare, amount), CVY_OK);
        assert_true(image.height == want.height && image.width == want.width);
        int n_off = 0, most = 0;
        for (int64_t k = 0; k < 3 * want.height * want.width; k++) {
            int off = abs(((uint8_t *)image.pixels)[k] - ((uint8_t *)want.pixels)[k]);
            n_off += off > 0;
            most = off > most ? off : most;
        }
        if (n_off > 0)
            print_error("%s: %d levels are off, by up to %d\n", title, n_off, most);
        n_bad += n_off > 0;
        n++;
    }
    assert_true(n > 30);
    assert_int_equal(n_bad, 0);
    cvy_safetensors_free(file);
    cvy_image_free(&image);
    cvy_image_free(&spare);
    cvy_image_free(&want);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(distorts_as_torchvision_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

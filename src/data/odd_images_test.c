/* Every file of tests/data/odd (made by tests/data/make_odd_images) comes out as tests/data/odd/expected.txt says,
   whole and as the part that is all of it. */
#include "base/file.h"
#include "data/decode.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define FOLDER "tests/data/odd/"
enum { AT_LEAST = 60 };
static const double tolerance = 2; /* levels of a mean: libraries round colours and upsample differently */

static struct cvy_box choose_all(void *context, int64_t height, int64_t width) {
    (void)context;
    return (struct cvy_box){.height = height, .width = width};
}

static bool is_as_said(const struct cvy_image *image, const char *expected) {
    char numbers[128], *at = numbers;
    snprintf(numbers, sizeof numbers, "%s", expected);
    double height = strtod(at, &at), width = strtod(at, &at), sum[3] = {0};
    if (image->height != (int64_t)height || image->width != (int64_t)width || image->channels != 3)
        return false;
    const uint8_t *pixels = image->pixels;
    for (int64_t i = 0; i < image->height * image->width * 3; i++)
        sum[i % 3] += pixels[i];
    for (int c = 0; c < 3; c++) {
        if (fabs(sum[c] / (height * width) - strtod(at, &at)) > tolerance)
            return false;
    }
    return true;
}

/* Returns whether the file came out as the rest of its line says. */
static bool check(const char *name, const char *expected, const struct cvy_image_part *part,
                  struct cvy_image *image) {
    char path[256];
    snprintf(path, sizeof path, FOLDER "%s", name);
    cvy_status status = cvy_decode_file(path, false, part, image);
    bool is_ok = strncmp(expected, "ok ", 3) == 0, is_good;
    if (is_ok)
        is_good = status == CVY_OK && is_as_said(image, expected + 3);
    else
        is_good = status == CVY_ERR_DATA && strstr(cvy_error(), expected + strlen("error ")) &&
                  strstr(cvy_error(), name) && !strchr(cvy_error(), '\n');
    if (!is_good)
        print_error("%s%s: not '%s' but %s\n", name, part ? ", as a part" : "", expected,
                    status == CVY_OK ? "other pixels" : cvy_error());
    return is_good;
}

static void all_come_out_as_expected(void **state) {
    (void)state;
    struct cvy_image_part all = {.choose = choose_all, .height = 1 << 20, .width = 1 << 20};
    struct cvy_image image = {0};
    char *text, *save = NULL;
    size_t n_bytes;
    int n = 0, n_bad = 0;
    assert_int_equal(cvy_read_file(FOLDER "expected.txt", 1 << 20, &text, &n_bytes), CVY_OK);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save), n++) {
        char *rest = strchr(line, ' ');
        assert_non_null(rest);
        *rest++ = '\0';
        n_bad += !check(line, rest, NULL, &image);
        n_bad += !check(line, rest, &all, &image);
    }
    cvy_image_free(&image);
    free(text);
    assert_true(n >= AT_LEAST);
    assert_int_equal(n_bad, 0);
    /* and none is forgotten */
    DIR *folder = opendir(FOLDER);
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder));)
        n -= entry->d_name[0] != '.' && strcmp(entry->d_name, "expected.txt") != 0;
    closedir(folder);
    assert_int_equal(n, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_come_out_as_expected)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

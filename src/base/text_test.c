/* Growing text, number parsing, nearest names. */
#include "base/text.h"
#include "cvy_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void test_growing(void **state) {
    (void)state;
    struct cvy_text text = {0};
    char *taken;
    for (int i = 0; i < 1000; i++)
        cvy_text_printf(&text, "%d ", i % 10);
    cvy_text_append(&text, "a\0b", 3);
    assert_int_equal(text.n, 2003);
    assert_int_equal(cvy_text_take(&text, &taken), CVY_OK);
    assert_memory_equal(taken, "0 1 2 3 4 5 6 7 8 9 0 1", 23);
    assert_memory_equal(taken + 2000, "a\0b\0", 4);
    free(taken);
    assert_null(text.data);
    assert_int_equal(cvy_text_take(&text, &taken), CVY_OK); /* the empty text */
    assert_string_equal(taken, "");
    free(taken);
}

static void test_failure_sticks(void **state) {
    (void)state;
    struct cvy_text text = {0};
    char *taken = NULL;
    cvy_text_append(&text, "x", SIZE_MAX - 10); /* no such memory: nothing is read */
    cvy_text_printf(&text, "y");
    assert_int_equal(text.status, CVY_ERR_MEMORY);
    assert_int_equal(cvy_text_take(&text, &taken), CVY_ERR_MEMORY);
    assert_null(taken);
    assert_int_equal(text.status, CVY_OK);
}

static void test_parse_i64(void **state) {
    (void)state;
    int64_t value = 77;
    assert_true(cvy_parse_i64("-42", &value));
    assert_int_equal(value, -42);
    assert_true(cvy_parse_i64("9223372036854775807", &value));
    assert_true(value == INT64_MAX);
    static const char *const wrong[] = {"", " 1", "1 ", "1x", "x", "0x10", "1.0", "9223372036854775808", "-"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        value = 77;
        if (cvy_parse_i64(wrong[i], &value) || value != 77)
            fail_msg("\"%s\" is no number", wrong[i]);
    }
}

static void test_parse_f64(void **state) {
    (void)state;
    double value = 77;
    assert_true(cvy_parse_f64("5e-4", &value));
    assert_true(value == 5e-4);
    assert_true(cvy_parse_f64("nan", &value));
    assert_true(isnan(value));
    assert_true(cvy_parse_f64("-inf", &value));
    assert_true(isinf(value));
    static const char *const wrong[] = {"", " 1", "1 ", "1,5", "e", "0.1.2", "."};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        value = 77;
        if (cvy_parse_f64(wrong[i], &value) || value != 77)
            fail_msg("\"%s\" is no number", wrong[i]);
    }
}

static void test_parse_bytes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t n;
    } right[] = {{"0", 0},
                 {"1500000", 1500000},
                 {"500M", 500000000},
                 {"1.5G", 1500000000},
                 {"2Gi", INT64_C(2) << 30},
                 {"64Ki", 65536},
                 {"3K", 3000},
                 {"1T", 1000000000000},
                 {"1Ti", INT64_C(1) << 40}};
    int64_t value = 77;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_true(cvy_parse_bytes(right[i].text, &value));
        assert_int_equal(value, right[i].n);
    }
    static const char *const wrong[] = {"",    "-1",  " 1", "M",   "1m",  "1 M", "1MB",  "1GG",     "1ii",
                                        "0x1", "1e3", ".",  "1iM", "nan", "inf", "1e19", "9999999T"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        value = 77;
        if (cvy_parse_bytes(wrong[i], &value) || value != 77)
            fail_msg("\"%s\" is no size", wrong[i]);
    }
}

static void expect_escaped(const char *from, const char *expected, bool is_utf8) {
    struct cvy_text text = {0};
    char *escaped;
    cvy_text_escape(&text, from);
    assert_int_equal(cvy_text_take(&text, &escaped), CVY_OK);
    assert_string_equal(escaped, expected);
    assert_true(cvy_is_utf8(escaped));
    assert_int_equal(cvy_is_utf8(from), is_utf8);
    free(escaped);
}

static void test_utf8(void **state) {
    (void)state;
    expect_escaped("", "", true);
    expect_escaped("caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x90\x88", "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x90\x88",
                   true);
    expect_escaped("a\nb\x1B[2J\x7F", "a\\x0Ab\\x1B[2J\\x7F", true);
    expect_escaped("\xC2\x9B"
                   "2J",
                   "\\xC2\\x9B2J", true);                     /* a terminal's other escape, U+009B */
    expect_escaped("caf\xE9", "caf\\xE9", false);             /* Latin-1 */
    expect_escaped("\xE2\x82", "\\xE2\\x82", false);          /* cut */
    expect_escaped("\xC0\xAF", "\\xC0\\xAF", false);          /* '/' in two bytes */
    expect_escaped("\xED\xA0\x80", "\\xED\\xA0\\x80", false); /* a surrogate */
    expect_escaped("\xF4\x90\x80\x80\xF8", "\\xF4\\x90\\x80\\x80\\xF8", false);
}

static void test_line(void **state) {
    (void)state;
    char line[8];
    cvy_text_line(line, sizeof line, "");
    assert_string_equal(line, "");
    cvy_text_line(line, sizeof line, "a\nb\xC2\x9B\xFFz"); /* a control of two bytes is one blank */
    assert_string_equal(line, "a b ?z");
    assert_int_equal(cvy_text_line(line, sizeof line, "1234567"), 7);
    assert_string_equal(line, "1234567");
    assert_int_equal(cvy_text_line(line, sizeof line, "123456\xC3\xA9"), 6);
    assert_string_equal(line, "123456");
    cvy_text_line(line, 1, "x");
    assert_string_equal(line, "");
}

static void test_nearest(void **state) {
    (void)state;
    static const char *const names[] = {"lenet5", "resnet18", "resnet20", "resnet50", "simple"};
    assert_string_equal(cvy_nearest("resnet5", names, 5), "resnet50");
    assert_string_equal(cvy_nearest("rsenet18", names, 5), "resnet18");
    assert_string_equal(cvy_nearest("lenet", names, 5), "lenet5");
    assert_string_equal(cvy_nearest("simple", names, 5), "simple");
    assert_string_equal(cvy_nearest("trian", (const char *const[]){"eval", "train"}, 2), "train");
    assert_string_equal(cvy_nearest("ismple", names, 5), "simple"); /* two letters swapped are one error */
    assert_null(cvy_nearest("vgg", names, 5));
    assert_null(cvy_nearest("", names, 5));
    assert_null(cvy_nearest("anything", names, 0));
    char longer[1000];
    memset(longer, 'r', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_null(cvy_nearest(longer, names, 5));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growing),     cmocka_unit_test(test_failure_sticks),
        cmocka_unit_test(test_parse_i64),   cmocka_unit_test(test_parse_f64),
        cmocka_unit_test(test_parse_bytes), cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_line),        cmocka_unit_test(test_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

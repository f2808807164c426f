/* Rate, time left and how times are written. */
#include "engine/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void rate_and_time_left(void **state) {
    (void)state;
    struct cvy_progress p = {.n_total = 1000, .n_done = 500}; /* resumed half way */
    assert_true(cvy_progress_rate(&p) == 0);
    assert_true(cvy_progress_left_s(&p) == -1);
    cvy_progress_add(&p, 60, 1.5);
    cvy_progress_add(&p, 40, 0.5);
    assert_true(cvy_progress_rate(&p) == 50);
    assert_true(cvy_progress_left_s(&p) == 8); /* 400 images at 50 a second */
}

static void clock_texts(void **state) {
    (void)state;
    const struct {
        double seconds;
        const char *text;
    } cases[] = {{-1, "-"},      {0, "0s"},       {59.4, "59s"},    {59.6, "1m00s"},
                 {185, "3m05s"}, {7620, "2h07m"}, {1e12, "999h00m"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[16];
        cvy_progress_clock(cases[i].seconds, text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rate_and_time_left), cmocka_unit_test(clock_texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

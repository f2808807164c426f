/* The progress bar's line fits into the terminal, whatever its width. */
#include "cli/printer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void bar_fits_the_width(void **state) {
    (void)state;
    const struct cvy_step_report r = {
        .epoch = 9, .n_epochs = 90, .step = 499, .n_steps = 1000, .lr = 0.0123, .metrics = {.loss = 2.25}};
    const struct cvy_progress p = {.n_total = 1000, .n_done = 500, .n_timed = 100, .seconds = 2};
    char line[PRINTER_LINE], whole[PRINTER_LINE];
    printer_bar(&r, &p, 200, whole);
    assert_string_equal(whole, "epoch 10/90 [============>           ] 500/1000  loss 2.2500  lr 0.0123  "
                               "50 images/s  10s left");
    for (int width = 1; width < 120; width++) {
        printer_bar(&r, &p, width, line);
        assert_in_range(strlen(line), 0, width - 1);
        if (width > 80) /* all but the bar has room */
            assert_non_null(strstr(line, "10s left"));
    }
    printer_bar(&r, &p, 20, line);
    assert_string_equal(line, "epoch 10/90 500/100");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bar_fits_the_width)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

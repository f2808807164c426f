/* The arithmetic of windows against counting by hand. */
#include "interpret.h"

#include "base/rng.h"
#include "ops/window.h"

static void ranges_are_what_counting_gives(void **state) {
    (void)state;
    struct cvy_rng rng;
    cvy_rng_init(&rng, test_seed(), CVY_RNG_TEST, 0, 0);
    for (int round = 0; round < 2000; round++) {
        struct cvy_window w = {.in = 1 + cvy_rng_below(&rng, 12),
                               .kernel = 1 + cvy_rng_below(&rng, 5),
                               .stride = 1 + cvy_rng_below(&rng, 4),
                               .padding = cvy_rng_below(&rng, 5),
                               .dilation = 1 + cvy_rng_below(&rng, 3)};
        int64_t span = w.dilation * (w.kernel - 1) + 1, n = 0;
        for (int64_t first = -w.padding; first + span <= w.in + w.padding; first += w.stride)
            n++;
        assert_int_equal(cvy_window_count(&w), n);
        for (int64_t k = 0; k < w.kernel; k++) {
            int64_t begin, end;
            cvy_window_range(&w, k, n, &begin, &end);
            for (int64_t out = 0; out < n; out++) {
                int64_t at = out * w.stride - w.padding + k * w.dilation;
                assert_int_equal(out >= begin && out < end, at >= 0 && at < w.in);
            }
        }
    }
}

/* With ceil_mode a last window may hang over the padded end, but must begin within the image. */
static void ceil_mode_adds_windows_that_begin_inside(void **state) {
    (void)state;
    struct cvy_window w = {.in = 8, .kernel = 3, .stride = 2, .dilation = 1};
    assert_int_equal(cvy_window_count(&w), 3);
    w.ceil_mode = true;
    assert_int_equal(cvy_window_count(&w), 4);
    w = (struct cvy_window){
        .in = 6, .kernel = 2, .stride = 3, .padding = 1, .dilation = 1, .ceil_mode = true};
    assert_int_equal(cvy_window_count(&w), 3);
    w = (struct cvy_window){
        .in = 5, .kernel = 2, .stride = 6, .padding = 1, .dilation = 1, .ceil_mode = true};
    assert_int_equal(cvy_window_count(&w), 1); /* the second would begin at 5, in the padding */
    w = (struct cvy_window){.in = 2, .kernel = 3, .stride = 1, .dilation = 1};
    assert_int_equal(cvy_window_count(&w), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_what_counting_gives),
        cmocka_unit_test(ceil_mode_adds_windows_that_begin_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

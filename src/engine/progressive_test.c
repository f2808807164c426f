/* Sizes of training images by epoch, and what is no such flag. */
#include "engine/progressive.h"

#include "cvy_test.h"

#include <string.h>

static void sizes_of(const char *text, int64_t n_epochs, const int64_t *want) {
    struct cvy_progressive p;
    assert_ok(cvy_progressive_parse(text, n_epochs, &p));
    for (int64_t e = 0; e < n_epochs; e++) {
        if (cvy_progressive_side(&p, e) != want[e])
            fail_msg("%s, epoch %lld: %lld, not %lld", text, (long long)e,
                     (long long)cvy_progressive_side(&p, e), (long long)want[e]);
    }
    assert_int_equal(cvy_progressive_side(&p, n_epochs + 3), p.last);
}

static void grows_in_steps(void **state) {
    (void)state;
    sizes_of("160:224", 5,
             (const int64_t[]){160, 192, 192, 224, 224}); /* 16, 32, 48 more are 1/2, 1, 3/2 steps */
    sizes_of("160:224", 3, (const int64_t[]){160, 192, 224});
    sizes_of("128:200", 4,
             (const int64_t[]){128, 160, 192, 200}); /* the last as asked for, whatever the step */
    sizes_of("8:16:2", 5, (const int64_t[]){8, 10, 12, 14, 16});
    sizes_of("160:161", 3, (const int64_t[]){160, 160, 161});
    sizes_of("160:224", 1, (const int64_t[]){224});
    sizes_of("224:224", 2, (const int64_t[]){224, 224});
    sizes_of("1:65536:1", 2, (const int64_t[]){1, 65536});
}

static void refuses(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "160",
                                      "160:",
                                      ":224",
                                      "160:224:",
                                      "160:224:0",
                                      "0:224",
                                      "160:224:32:1",
                                      "160-224",
                                      "160:70000",
                                      "160:99999999999999999999",
                                      "224:160"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct cvy_progressive p;
        if (cvy_progressive_parse(bad[i], 10, &p) != CVY_ERR_USAGE)
            fail_msg("'%s' is taken", bad[i]);
        assert_non_null(strstr(cvy_error(), "--progressive-resize"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(grows_in_steps), cmocka_unit_test(refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The confusion matrix and the worst images, of made-up logits. */
#include "engine/mistakes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { CLASSES = 3, BATCH = 4 };

static void add(struct cvy_mistakes *m, const int64_t labels[BATCH], const int64_t guesses[BATCH],
                const float losses[BATCH], int64_t first) {
    int64_t indices[BATCH];
    for (int64_t i = 0; i < BATCH; i++) {
        indices[i] = first + i;
        for (int64_t k = 0; k < CLASSES; k++)
            m->logits[i * CLASSES + k] = k == guesses[i] ? logf(2) : 0;
    }
    const cvy_batch batch = {.n = BATCH, .labels = labels, .indices = indices};
    cvy_mistakes_add(m, &batch, losses);
}

static void test_counts_and_worst(void **state) {
    (void)state;
    struct cvy_mistakes m = {0};
    assert_int_equal(cvy_mistakes_open(&m, CLASSES, BATCH), CVY_OK);
    add(&m, (int64_t[]){0, 1, 2, 2}, (int64_t[]){0, 2, 2, 1}, (float[]){9, 2, 0.1F, 3}, 10);
    assert_int_equal(m.counts[0 * CLASSES + 0], 1);
    assert_int_equal(m.counts[1 * CLASSES + 2], 1);
    assert_int_equal(m.counts[2 * CLASSES + 1], 1);
    assert_int_equal(m.counts[2 * CLASSES + 2], 1);
    assert_int_equal(m.counts[1 * CLASSES + 1], 0);
    assert_int_equal(m.n_worst, 2); /* the right one with the loss 9 is no mistake */
    assert_int_equal(m.worst[0].index, 13);
    assert_int_equal(m.worst[0].guess, 1);
    assert_int_equal(m.worst[1].index, 11);
    assert_true(fabs(m.worst[0].p_guess - 0.5) < 1e-6); /* 2 of 2 + 1 + 1 */

    cvy_mistakes_clear(&m);
    assert_int_equal(m.n_worst, 0);
    assert_int_equal(m.counts[2 * CLASSES + 1], 0);
    cvy_mistakes_free(&m);
}

/* More mistakes than are kept: the largest losses stay, of equal ones those that came first. */
static void test_only_the_worst_stay(void **state) {
    (void)state;
    struct cvy_mistakes m = {0};
    const int64_t labels[] = {0, 0, 0, 0}, guesses[] = {1, 1, 1, 1};
    assert_int_equal(cvy_mistakes_open(&m, CLASSES, BATCH), CVY_OK);
    for (int64_t k = 0; k < 10; k++)
        add(&m, labels, guesses, (float[]){1, (float)k, 1, NAN}, k * BATCH);
    assert_int_equal(m.n_worst, CVY_N_WORST);
    for (int i = 0; i < 8; i++) /* 9 down to 2 */
        assert_int_equal(m.worst[i].index, (9 - i) * BATCH + 1);
    assert_int_equal(m.worst[8].index, 0); /* then the ones, first come */
    assert_int_equal(m.worst[9].index, 2);
    assert_int_equal(m.worst[10].index, BATCH);
    cvy_mistakes_free(&m);
}

static void test_too_many_classes_to_count(void **state) {
    (void)state;
    struct cvy_mistakes m = {0};
    assert_int_equal(cvy_mistakes_open(&m, CVY_MOST_CONFUSED + 1, 1), CVY_OK);
    assert_null(m.counts);
    for (int64_t k = 0; k <= CVY_MOST_CONFUSED; k++)
        m.logits[k] = k == 5;
    const cvy_batch batch = {.n = 1, .labels = (int64_t[]){4}, .indices = (int64_t[]){7}};
    cvy_mistakes_add(&m, &batch, (float[]){1});
    assert_int_equal(m.n_worst, 1);
    assert_int_equal(m.worst[0].guess, 5);
    cvy_mistakes_clear(&m);
    cvy_mistakes_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts_and_worst),
                                       cmocka_unit_test(test_only_the_worst_stay),
                                       cmocka_unit_test(test_too_many_classes_to_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

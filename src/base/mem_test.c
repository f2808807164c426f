/* Allocation, pools and growing arrays. */
#include "base/mem.h"
#include "base/vec.h"
#include "cvy_test.h"

#include <stdlib.h>
#include <string.h>

static void test_alloc(void **state) {
    (void)state;
    double *items, *none;
    void *huge = &items;
    assert_int_equal(CVY_ALLOC(items, 100), CVY_OK);
    for (int i = 0; i < 100; i++)
        assert_true(items[i] == 0);
    assert_int_equal(CVY_ALLOC(none, 0), CVY_OK);
    assert_non_null(none);
    assert_int_equal(cvy_alloc_items(SIZE_MAX / 4, 8, &huge), CVY_ERR_MEMORY); /* the product overflows */
    assert_null(huge);
    free(items);
    free(none);
    assert_int_equal(cvy_align_up(1, CVY_ALIGN), 64);
    assert_int_equal(cvy_align_up(64, CVY_ALIGN), 64);
    assert_int_equal(cvy_align_up(0, CVY_ALIGN), 0);
}

static void test_pool(void **state) {
    (void)state;
    struct cvy_pool pool = {0};
    unsigned char *blocks[200];
    for (size_t i = 0; i < 200; i++) {
        size_t n = i * 7; /* from 0; some larger than what is left of a block */
        assert_int_equal(cvy_pool_alloc(&pool, n, (void **)&blocks[i]), CVY_OK);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(blocks[i][k], 0);
        memset(blocks[i], (int)i, n);
    }
    for (size_t i = 0; i < 200; i++) { /* nobody wrote into another's */
        for (size_t k = 0; k < i * 7; k++)
            assert_int_equal(blocks[i][k], i);
    }
    void *block;
    assert_int_equal(cvy_pool_alloc(&pool, 100000, &block), CVY_OK);
    assert_int_equal(cvy_pool_alloc(&pool, SIZE_MAX - 8, &block), CVY_ERR_MEMORY);
    cvy_pool_free(&pool);
    assert_null(pool.blocks);
    cvy_pool_free(&pool); /* empty is fine */
}

static void test_pool_text(void **state) {
    (void)state;
    struct cvy_pool pool = {0};
    char *text, expected[10001];
    assert_int_equal(cvy_pool_strdup(&pool, "layer1.0.conv1", &text), CVY_OK);
    assert_string_equal(text, "layer1.0.conv1");
    assert_int_equal(cvy_pool_printf(&pool, &text, "%s.%d", "bn", 3), CVY_OK);
    assert_string_equal(text, "bn.3");
    assert_int_equal(cvy_pool_printf(&pool, &text, "%010000d", 5), CVY_OK);
    memset(expected, '0', 9999);
    memcpy(expected + 9999, "5", 2);
    assert_string_equal(text, expected);
    cvy_pool_free(&pool);
}

static void test_vec(void **state) {
    (void)state;
    CVY_VEC(struct {
        int64_t a;
        char b;
    })
    items = {0};
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(cvy_vec_grow(&items, 1), CVY_OK);
        items.data[items.n].a = i;
        items.data[items.n++].b = 'x';
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(items.data[i].a, i);
    assert_true(items.cap < 2100); /* grows by doubling */
    assert_int_equal(cvy_vec_grow(&items, SIZE_MAX / 16), CVY_ERR_MEMORY);
    assert_int_equal(items.n, 1000);
    cvy_vec_free(&items);

    CVY_VEC(int) numbers = {0};
    assert_int_equal(cvy_vec_push(&numbers, 5), CVY_OK);
    assert_int_equal(cvy_vec_push(&numbers, 6), CVY_OK);
    assert_int_equal(numbers.data[0] * 10 + numbers.data[1], 56);
    cvy_vec_free(&numbers);
    assert_null(numbers.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_pool_text),
        cmocka_unit_test(test_vec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

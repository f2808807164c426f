/* The first few of many: in order, equals in the order they came, as a stable sort of all would leave them. */
#include "base/ranking.h"
#include "cvy_test.h"

enum { MOST = 4 };

struct item {
    int key, number;
};

static int by_key(const void *a, const void *b) {
    const struct item *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static void expect(const struct item *all, int n_all, const struct item *expected, int n_expected) {
    struct item kept[MOST];
    int n = 0;
    for (int i = 0; i < n_all; i++)
        cvy_rank(kept, sizeof *kept, &n, MOST, &all[i], by_key);
    assert_int_equal(n, n_expected);
    for (int i = 0; i < n; i++) {
        assert_int_equal(kept[i].key, expected[i].key);
        assert_int_equal(kept[i].number, expected[i].number);
    }
}

static void keeps_the_first_in_order(void **state) {
    (void)state;
    static const struct item all[] = {{5, 0}, {7, 1}, {5, 2}, {9, 3}, {1, 4}, {5, 5}, {9, 6}, {1, 7}};
    static const struct item of_three[] = {{5, 0}, {5, 2}, {7, 1}};
    static const struct item of_five[] = {{1, 4}, {5, 0}, {5, 2}, {7, 1}};
    static const struct item of_all[] = {{1, 4}, {1, 7}, {5, 0}, {5, 2}};
    expect(all, 0, NULL, 0);
    expect(all, 3, of_three, 3);
    expect(all, 5, of_five, 4);
    expect(all, 8, of_all, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_the_first_in_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The tree over shards: the recipe and the plan together must perform the tree's definition, for every number
   of devices. Sums are checked symbolically: a value is the text of the additions that made it. */
#include "cvy_test.h"
#include "rt/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHARDS = 33, MAX_TEXT = 512 };

/* value(level, first) straight from the definition; the caller frees it. */
static char *value(int n_shards, int level, int first) {
    char *text;
    if (level == 0) {
        assert_true(asprintf(&text, "%d", first) > 0);
        return text;
    }
    int right_first = first + (1 << (level - 1));
    char *left = value(n_shards, level - 1, first);
    if (right_first >= n_shards)
        return left;
    char *right = value(n_shards, level - 1, right_first);
    assert_true(asprintf(&text, "(%s+%s)", left, right) > 0);
    free(left);
    free(right);
    return text;
}

static void add(char *into, const char *from) {
    char sum[MAX_TEXT];
    assert_true(snprintf(sum, sizeof sum, "(%s+%s)", into, from) < MAX_TEXT);
    memcpy(into, sum, sizeof sum);
}

/* Runs the recipe on every device, then the plan; the root must be the definition's text. */
static void check_tree(int n_shards, int n_devices) {
    static char sums[MAX_SHARDS * 2][MAX_TEXT];
    static struct cvy_partial partials[MAX_SHARDS * 2 + CVY_TREE_DEPTH];
    uint8_t n_adds[MAX_SHARDS * 2];
    int n_partials = 0;
    for (int d = 0; d < n_devices; d++) {
        int32_t first, n, n_sums;
        struct cvy_tree_stack stack = {.n_shards = n_shards};
        char(*sum)[MAX_TEXT] = &sums[n_partials];
        cvy_tree_shards(n_shards, n_devices, d, &first, &n);
        for (int s = first; s < first + n; s++) {
            int k = stack.n;
            snprintf(sum[k], MAX_TEXT, "%d", s);
            for (int adds = cvy_tree_push(&stack, s, 0); adds > 0; adds--, k--)
                add(sum[k - 1], sum[k]);
        }
        int32_t n_left = cvy_tree_partials(n_shards, n_devices, d, &partials[n_partials], &n_sums);
        assert_int_equal(n_left, stack.n);
        assert_int_equal(n_sums, stack.peak);
        for (int k = 0; k < n_left; k++) {
            const struct cvy_partial *p = &partials[n_partials + k];
            char *expected = value(n_shards, p->level, p->first);
            assert_string_equal(sum[k], expected);
            assert_int_equal(p->device, d);
            assert_int_equal(p->sum, k);
            free(expected);
        }
        n_partials += n_left;
    }
    assert_int_equal(cvy_tree_plan(n_shards, partials, n_partials, n_adds), CVY_OK);
    int top = -1;
    for (int p = 0; p < n_partials; p++) {
        memmove(sums[++top], sums[p], MAX_TEXT);
        for (int i = 0; i < n_adds[p]; i++, top--)
            add(sums[top - 1], sums[top]);
    }
    assert_int_equal(top, 0);
    int levels = 0;
    while (1 << levels < n_shards)
        levels++;
    char *expected = value(n_shards, levels, 0);
    assert_string_equal(sums[0], expected);
    free(expected);
}

static void test_every_cut(void **state) {
    (void)state;
    for (int n_shards = 1; n_shards <= MAX_SHARDS; n_shards++) {
        for (int n_devices = 1; n_devices <= n_shards + 3; n_devices++)
            check_tree(n_shards, n_devices);
    }
}

static void test_cut_node_is_complete(void **state) {
    (void)state;
    struct cvy_partial p[CVY_TREE_DEPTH];
    assert_int_equal(cvy_tree_partials(3, 2, 1, p, NULL), 2); /* shards 1 and 2: no siblings */
    assert_int_equal(p[0].first, 1);
    assert_int_equal(p[0].level, 0);
    assert_int_equal(p[1].first, 2);
    assert_int_equal(p[1].level, 1);
    assert_int_equal(cvy_tree_partials(5, 1, 0, p, NULL), 1); /* one device is left with the root */
    assert_int_equal(p[0].level, 3);
}

static void test_shards_are_shared_out(void **state) {
    (void)state;
    int32_t first, n, next = 0;
    for (int d = 0; d < 5; d++, next += n) {
        cvy_tree_shards(8, 5, d, &first, &n);
        assert_int_equal(first, next);
        assert_true(n == 1 || n == 2);
    }
    assert_int_equal(next, 8);
    cvy_tree_shards(2, 4, 0, &first, &n);
    assert_int_equal(n, 0);
}

static void test_wrong_partials(void **state) {
    (void)state;
    uint8_t n_adds[4];
    const struct cvy_partial hole[] = {{.first = 0}, {.first = 2, .level = 1}};
    assert_int_equal(cvy_tree_plan(4, hole, 2, n_adds), CVY_ERR_FAILED);
    const struct cvy_partial askew[] = {{.first = 0}, {.first = 1, .level = 1}, {.first = 3}};
    assert_int_equal(cvy_tree_plan(4, askew, 3, n_adds), CVY_ERR_FAILED);
    const struct cvy_partial twice[] = {{.first = 0, .level = 1}, {.first = 0, .level = 1}};
    assert_int_equal(cvy_tree_plan(2, twice, 2, n_adds), CVY_ERR_FAILED);
    const struct cvy_partial missing[] = {{.first = 0, .level = 1}};
    assert_int_equal(cvy_tree_plan(4, missing, 1, n_adds), CVY_ERR_FAILED);
    assert_int_equal(cvy_tree_plan(0, missing, 0, n_adds), CVY_ERR_FAILED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_cut_node_is_complete),
        cmocka_unit_test(test_shards_are_shared_out),
        cmocka_unit_test(test_wrong_partials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

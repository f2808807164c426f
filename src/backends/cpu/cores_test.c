/* Shares of the cores. */
#include "backends/cpu/cores.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Every device has a core; with enough cores the shares are a partition of them. */
static void shares_cover(void **state) {
    (void)state;
    for (int n = 1; n <= 9; n++) {
        for (int devices = 1; devices <= 12; devices++) {
            int next = 0, smallest = n, largest = 0;
            for (int i = 0; i < devices; i++) {
                int first, count;
                cpu_cores_share(n, i, devices, &first, &count);
                assert_true(count >= 1 && first >= 0 && first + count <= n);
                if (devices <= n)
                    assert_int_equal(first, next);
                next = first + count;
                smallest = count < smallest ? count : smallest;
                largest = count > largest ? count : largest;
            }
            assert_int_equal(next, n);
            assert_true(largest - smallest <= 1);
        }
    }
}

static void quotas(void **state) {
    (void)state;
    assert_int_equal(cpu_cores_granted(4, 0), 4); /* none */
    assert_int_equal(cpu_cores_granted(4, 0.1), 1);
    assert_int_equal(cpu_cores_granted(4, 1), 1);
    assert_int_equal(cpu_cores_granted(4, 1.5), 2);
    assert_int_equal(cpu_cores_granted(4, 3.5), 4);
    assert_int_equal(cpu_cores_granted(4, 8), 4);
}

static void permitted_cores(void **state) {
    struct cpu_cores cores;
    (void)state;
    assert_int_equal(cpu_cores_open(&cores), CVY_OK);
    assert_true(cores.n >= 1 && cores.n <= cores.n_permitted);
    for (int i = 1; i < cores.n_permitted; i++)
        assert_true(cores.pu[i] != cores.pu[i - 1]);
    cpu_cores_close(&cores);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_cover),
        cmocka_unit_test(quotas),
        cmocka_unit_test(permitted_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Known and unknown instruction sets. */
#include "backends/cpu/isa.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <oneapi/dnnl/dnnl.h>
#include <cmocka.h>

static void assert_name(int isa, const char *expected) {
    struct cvy_text text = {0};
    cpu_isa_print(isa, &text);
    assert_string_equal(text.data, expected);
    cvy_text_free(&text);
}

static void names(void **state) {
    (void)state;
    assert_name(dnnl_cpu_isa_avx2, "AVX2");
    assert_name(dnnl_cpu_isa_avx512_core_amx, "AVX-512 with AMX");
    assert_name(0x7fff, "instruction set 0x7fff");
}

static void bf16(void **state) {
    (void)state;
    assert_true(cpu_isa_has_bf16(dnnl_cpu_isa_avx512_core_bf16));
    assert_true(cpu_isa_has_bf16(dnnl_cpu_isa_avx512_core_amx));
    assert_false(cpu_isa_has_bf16(dnnl_cpu_isa_avx512_core_vnni));
    assert_false(cpu_isa_has_bf16(dnnl_cpu_isa_avx2_vnni));
    assert_false(cpu_isa_has_bf16(dnnl_cpu_isa_all));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(bf16)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

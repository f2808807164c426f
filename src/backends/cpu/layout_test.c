/* Layouts: names, interning, sizes, views. */
#include "backends/cpu/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct cvy_desc image = {CVY_F32, {.n = 4, .dim = {2, 17, 5, 7}}};

static const struct cvy_layout *find(const char *name) {
    const struct cvy_layout *layout;
    assert_true(cpu_layout_find(NULL, name, &layout));
    return layout;
}

static void names_round_trip(void **state) {
    static const char *const names[] = {"aBcd16b", "acdb", "ABcd16b16a", "g32:aBcde16b"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct cvy_text text = {0};
        const struct cvy_layout *layout = find(names[i]);
        cpu_layout_print(layout, &text);
        assert_string_equal(text.data, names[i]);
        assert_ptr_equal(find(text.data), layout);
        cvy_text_free(&text);
    }
    assert_null(find("plain"));
}

static void unknown_names(void **state) {
    static const char *const names[] = {"", "aBcd17b", "g1:aBcde16b", "gx:abcde", "PLAIN"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct cvy_layout *layout;
        assert_false(cpu_layout_find(NULL, names[i], &layout));
    }
}

/* What oneDNN answers for a layout's descriptor is that layout, at every shard size. */
static void descriptors_round_trip(void **state) {
    static const char *const names[] = {"aBcd16b", "acdb", "aBcd8b"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct cvy_layout *layout = find(names[i]), *back;
        for (int64_t n = 1; n < 5; n++) {
            struct cvy_desc desc = image;
            dnnl_memory_desc_t md;
            desc.shape.dim[0] = n;
            assert_int_equal(cpu_layout_md(layout, &desc, 1, &md), CVY_OK);
            assert_int_equal(cpu_layout_of(&md, &desc, &back), CVY_OK);
            assert_ptr_equal(back, layout);
        }
    }
}

/* Weights of one input channel: these layouts have equal descriptors, but oneDNN's kernels take only the one that
   they asked for. */
static void size_one_keeps_its_layout(void **state) {
    static const char *const names[] = {"Abcd16a", "Acdb16a", "Acdb8a"};
    static const struct cvy_desc weight = {CVY_F32, {.n = 4, .dim = {6, 1, 5, 5}}};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct cvy_layout *layout = find(names[i]), *back;
        dnnl_memory_desc_t md;
        assert_int_equal(cpu_layout_md(layout, &weight, 1, &md), CVY_OK);
        assert_int_equal(cpu_layout_of(&md, &weight, &back), CVY_OK);
        assert_ptr_equal(back, layout);
    }
}

/* The matrix of a pointwise convolution lies as its weights do. */
static void matrices_are_weights(void **state) {
    static const struct cvy_desc matrix = {CVY_F32, {.n = 2, .dim = {40, 17}}};
    const struct cvy_layout *layout = find("ABcd16b16a"), *back;
    dnnl_memory_desc_t md;
    (void)state;
    assert_int_equal(cpu_layout_md(layout, &matrix, 1, &md), CVY_OK);
    assert_int_equal(md.ndims, 4);
    assert_int_equal(cpu_layout_of(&md, &matrix, &back), CVY_OK);
    assert_ptr_equal(back, layout);
    assert_int_equal(cpu_layout_bytes(layout, &matrix), 48 * 32 * 4);
    assert_int_equal(cpu_layout_md(NULL, &matrix, 1, &md), CVY_OK);
    assert_int_equal(md.ndims, 2);
    assert_int_equal(cpu_layout_md(find("ba"), &matrix, 1, &md), CVY_OK);
    assert_int_equal(md.ndims, 2);
}

static void sizes(void **state) {
    (void)state;
    assert_int_equal(cpu_layout_bytes(NULL, &image), 2 * 17 * 5 * 7 * 4);
    assert_int_equal(cpu_layout_bytes(find("acdb"), &image), 2 * 17 * 5 * 7 * 4);
    assert_int_equal(cpu_layout_bytes(find("aBcd16b"), &image), 2 * 32 * 5 * 7 * 4);
}

static void views(void **state) {
    struct cpu_view v;
    (void)state;
    assert_true(cpu_layout_view(find("aBcd16b"), &image, &v));
    assert_int_equal(v.lanes, 16);
    assert_int_equal(v.n_blocks, 2);
    assert_int_equal(v.padded_channels, 32);
    assert_int_equal(v.image, 32 * 35);
    assert_true(cpu_layout_view(NULL, &image, &v));
    assert_int_equal(v.lanes, 1);
    assert_int_equal(v.n_blocks, 17);
    assert_false(cpu_layout_view(find("ABcd16b16a"), &image, &v));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_round_trip),
        cmocka_unit_test(unknown_names),
        cmocka_unit_test(descriptors_round_trip),
        cmocka_unit_test(size_one_keeps_its_layout),
        cmocka_unit_test(matrices_are_weights),
        cmocka_unit_test(sizes),
        cmocka_unit_test(views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

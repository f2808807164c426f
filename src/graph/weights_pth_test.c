/* PyTorch's files: what torch.save wrote we read, in every layout, and hostile ones get one clear line. The files are
   the fuzzer's, made by tools/make_pth_files.py. */
#include "base/file.h"
#include "cvy_test.h"
#include "graph/pickle.h"
#include "graph/weights_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS "tests/fuzz/corpus/pth/"

static void assert_values(struct cvy_weights_file *file, const char *name, const struct cvy_desc *want,
                          const void *values) {
    struct cvy_desc desc;
    const void *bytes;
    assert_ok(cvy_weights_file_find(file, name, &desc, &bytes));
    assert_true(cvy_desc_equal(&desc, want));
    assert_memory_equal(bytes, values, cvy_desc_bytes(want));
}

/* tools/make_pth_files.py: state(). */
static void assert_state_in(struct cvy_weights_file *file) {
    float count[24];
    for (int i = 0; i < 24; i++)
        count[i] = (float)i;
    const float turned[] = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};
    const int64_t seven = 7;
    assert_int_equal(cvy_weights_file_count(file), 5);
    assert_string_equal(cvy_weights_file_name(file, 0), "bn.num_batches_tracked");
    assert_values(file, "conv.weight", &(struct cvy_desc){CVY_F32, CVY_SHAPE(2, 3, 2, 2)}, count);
    assert_values(file, "conv.bias", &(struct cvy_desc){CVY_F32, CVY_SHAPE(4)}, count + 2);
    assert_values(file, "fc.weight", &(struct cvy_desc){CVY_F32, CVY_SHAPE(4, 3)}, turned);
    assert_values(file, "bn.num_batches_tracked", &(struct cvy_desc){CVY_I64, {.n = 0}}, &seven);
    assert_values(file, "empty", &(struct cvy_desc){CVY_F32, CVY_SHAPE(0, 3)}, "");
    assert_true(cvy_weights_file_has(file, "fc.weight") && !cvy_weights_file_has(file, "fc.bias"));
    assert_null(cvy_weights_file_metadata(file, "model"));
}

static void assert_state(const char *path) {
    struct cvy_weights_file *file;
    assert_ok(cvy_weights_file_open(path, &file));
    assert_state_in(file);
    cvy_weights_file_free(file);
}

static void test_layouts_and_wrappers(void **state) {
    (void)state;
    assert_state(SEEDS "layouts");
    assert_state(SEEDS "protocol4");
    assert_state(SEEDS "torchvision");
    assert_state(SEEDS "timm");
}

/* Names from before torchvision's present ones. */
static void test_old_names(void **state) {
    (void)state;
    struct cvy_weights_file *file;
    assert_ok(cvy_weights_file_open(SEEDS "densenet", &file));
    assert_int_equal(cvy_weights_file_count(file), 4);
    assert_true(cvy_weights_file_has(file, "denseblock1.denselayer12.norm1.weight"));
    assert_true(cvy_weights_file_has(file, "denseblock1.denselayer12.conv2.weight"));
    assert_true(cvy_weights_file_has(file, "denseblock1.denselayer12.norm2.bias"));
    assert_true(cvy_weights_file_has(file, "denseblock1.denselayer12.norm.3.weight"));
    cvy_weights_file_free(file);
}

static void test_types(void **state) {
    (void)state;
    struct cvy_weights_file *file;
    struct cvy_desc desc;
    const void *bytes;
    assert_ok(cvy_weights_file_open(SEEDS "types", &file));
    assert_values(file, "float16", &(struct cvy_desc){CVY_F16, CVY_SHAPE(3)},
                  (uint16_t[]){0, 0x3c00, 0x4000});
    assert_values(file, "bfloat16", &(struct cvy_desc){CVY_BF16, CVY_SHAPE(3)},
                  (uint16_t[]){0, 0x3f80, 0x4000});
    assert_values(file, "float64", &(struct cvy_desc){CVY_F64, CVY_SHAPE(3)}, (double[]){0, 1, 2});
    assert_values(file, "int32", &(struct cvy_desc){CVY_I32, CVY_SHAPE(3)}, (int32_t[]){0, 1, 2});
    assert_values(file, "uint8", &(struct cvy_desc){CVY_U8, CVY_SHAPE(3)}, (uint8_t[]){0, 1, 2});
    assert_fails(cvy_weights_file_find(file, "bool", &desc, &bytes), CVY_ERR_DATA,
                 "BoolStorage cannot be read");
    assert_fails(cvy_weights_file_find(file, "none", &desc, &bytes), CVY_ERR_DATA, "no tensor 'none'");
    cvy_weights_file_free(file);
    assert_ok(cvy_weights_file_open(SEEDS "parameter", &file));
    assert_values(file, "w", &(struct cvy_desc){CVY_F32, CVY_SHAPE(2)}, (float[]){0, 1});
    cvy_weights_file_free(file);
}

static void test_refused_files(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"old", "PyTorch before 1.6"},     {"expanded", "'w': it has more elements than its storage"},
        {"path", "pathlib.PurePosixPath"}, {"no_tensor", "'w' is not a tensor"},
        {"no_dict", "no dict of tensors"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cvy_weights_file *file;
        char path[64];
        snprintf(path, sizeof path, SEEDS "%s", cases[i][0]);
        assert_fails(cvy_weights_file_open(path, &file), CVY_ERR_DATA, cases[i][1]);
        assert_memory_equal(cvy_error(), path, strlen(path));
    }
}

/* Every file that is cut, and every one with a byte changed, is refused or read as it was written, by its checksums. */
static void test_damaged_files(void **state) {
    (void)state;
    char *bytes;
    size_t n;
    assert_ok(cvy_read_file(SEEDS "layouts", 1 << 16, &bytes, &n));
    for (size_t k = 0; k < n; k++) {
        struct cvy_weights_file *file;
        unsigned char *copy = malloc(k + 1);
        memcpy(copy, bytes, k);
        assert_int_equal(cvy_weights_file_open_memory(copy, k, "cut", &file), CVY_ERR_DATA);
        free(copy);
        bytes[k] ^= 0x55;
        if (cvy_weights_file_open_memory(bytes, n, "damaged", &file) == CVY_OK) {
            assert_state_in(file);
            cvy_weights_file_free(file);
        }
        bytes[k] ^= 0x55;
    }
    free(bytes);
}

static void test_hostile_pickles(void **state) {
    (void)state;
    static const char *const names[] = {"collections.OrderedDict", "a.b", NULL};
    static const struct {
        const char *pickle, *reason; /* the last byte of the pickle is its stop, unless it is cut */
    } cases[] = {
        {"cos\nsystem\nX\4", "it needs os.system"},
        {"c\x1b[\nx\n.", "it needs ?[.x"},
        {"\x8c\2os\x8c\6system\x93.", "it needs os.system"},
        {"X\xff\xff\xff\xff.", "ends too early"},
        {"(", "ends too early"},
        {".", "a value is missing"},
        {"(.", "a value is missing"},
        {"t.", "a mark is missing"},
        {"N\x85\x86.", "a value is missing"},
        {"h\5.", "has not kept"},
        {"Nr\xff\xff\xff\xff.", "larger than the pickle"},
        {"NNs.", "no container"},
        {"]NNs.", "no container"},
        {"}(NNNu.", "no container"},
        {"NR.", "a value is missing"},
        {"N)R.", "not one of a global with a tuple"},
        {"N}b.", "no object"},
        {"\x8a\x09"
         "123456789.",
         "more than 64 bits"},
        {"\x80\x09.", "protocol"},
        {"I1\n.", "opcode 0x49"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cvy_pickle pickle;
        size_t n = strlen(cases[i].pickle);
        assert_fails(cvy_pickle_read((const unsigned char *)cases[i].pickle, n, names, &pickle), CVY_ERR_DATA,
                     cases[i].reason);
        cvy_pickle_free(&pickle);
    }
}

/* A list that contains itself, a call that is not made, negative numbers. */
static void test_good_pickle(void **state) {
    (void)state;
    static const char *const names[] = {"collections.OrderedDict", "a.b", NULL};
    static const char bytes[] = "(]q\1h\1aca\nb\nJ\xfe\xff\xff\xff\x8a\1\xff\x86R)t.rest";
    struct cvy_pickle p;
    assert_ok(cvy_pickle_read((const unsigned char *)bytes, sizeof bytes - 1, names, &p));
    assert_int_equal(p.n_bytes, sizeof bytes - 1 - 4);
    assert_int_equal(p.root->n_items, 3);
    const struct cvy_pickle_value *list = cvy_pickle_item(&p, p.root, 0),
                                  *call = cvy_pickle_item(&p, p.root, 1);
    assert_ptr_equal(cvy_pickle_item(&p, list, 0), list);
    assert_true(call->kind == CVY_PICKLE_CALL && call->integer == 1);
    assert_int_equal(cvy_pickle_item(&p, call, 0)->integer, -2);
    assert_int_equal(cvy_pickle_item(&p, call, 1)->integer, -1);
    assert_null(cvy_pickle_item(&p, call, 2));
    cvy_pickle_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts_and_wrappers),
        cmocka_unit_test(test_old_names),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_refused_files),
        cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_hostile_pickles),
        cmocka_unit_test(test_good_pickle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

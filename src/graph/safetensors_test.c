/* Safetensors: what we write we read, and hostile files get one clear line. */
#include "cvy_test.h"
#include "graph/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file of this header and n_data bytes 0, 1, 2, …; the caller frees it. */
static unsigned char *make_file(const char *header, size_t n_data, size_t *n_bytes) {
    size_t n_header = strlen(header);
    unsigned char *bytes = calloc(1, 8 + n_header + n_data + 1);
    assert_non_null(bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)n_header >> (8 * i));
    strcpy((char *)bytes + 8, header); /* the data take the place of its end */
    for (size_t i = 0; i < n_data; i++)
        bytes[8 + n_header + i] = (unsigned char)i;
    *n_bytes = 8 + n_header + n_data;
    return bytes;
}

/* Opening fails as bad data, with one line that names the file and says `reason`. */
static void assert_refused(const unsigned char *bytes, size_t n_bytes, const char *reason) {
    struct cvy_safetensors *file = NULL;
    unsigned char *copy = malloc(n_bytes ? n_bytes : 1); /* exactly as long: sanitizers see reads behind it */
    memcpy(copy, bytes, n_bytes);
    assert_fails(cvy_safetensors_open_memory(copy, n_bytes, "evil", &file), CVY_ERR_DATA, reason);
    assert_null(file);
    assert_memory_equal(cvy_error(), "evil: ", 6);
    free(copy);
}

static void test_good_file(void **state) {
    (void)state;
    size_t n_bytes;
    unsigned char *bytes =
        make_file("{\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[1,9]},"
                  "\"__metadata__\":{\"format\":\"pt\"},\"e\":{\"dtype\":\"F32\",\"shape\":[0,3],"
                  "\"data_offsets\":[9,9]},\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}   ",
                  9, &n_bytes);
    struct cvy_safetensors *file;
    struct cvy_desc desc;
    const void *data;
    assert_int_equal(cvy_safetensors_open_memory(bytes, n_bytes, "good", &file), CVY_OK);
    assert_int_equal(cvy_safetensors_count(file), 3);
    assert_string_equal(cvy_safetensors_name(file, 0), "a");
    assert_string_equal(cvy_safetensors_name(file, 2), "e");
    assert_true(cvy_safetensors_has(file, "b") && !cvy_safetensors_has(file, "c"));
    assert_string_equal(cvy_safetensors_metadata(file, "format"), "pt");
    assert_null(cvy_safetensors_metadata(file, "classes"));
    assert_int_equal(cvy_safetensors_find(file, "b", &desc, &data), CVY_OK);
    assert_true(cvy_shape_equal(&desc.shape, &CVY_SHAPE(2, 1)) && desc.dtype == CVY_F32);
    assert_ptr_equal(data, bytes + n_bytes - 8);
    assert_int_equal(cvy_safetensors_find(file, "a", &desc, &data), CVY_OK);
    assert_int_equal(desc.shape.n, 0);
    assert_fails(cvy_safetensors_find(file, "c", &desc, &data), CVY_ERR_DATA, "'c'");
    cvy_safetensors_free(file);
    free(bytes);
}

static void test_unknown_types_fail_when_touched(void **state) {
    (void)state;
    size_t n_bytes;
    unsigned char *bytes =
        make_file("{\"x\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]},"
                  "\"y\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[1,2]},"
                  "\"z\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1],\"data_offsets\":[2,3]}}",
                  3, &n_bytes);
    struct cvy_safetensors *file;
    struct cvy_desc desc;
    const void *data;
    assert_int_equal(cvy_safetensors_open_memory(bytes, n_bytes, "odd", &file), CVY_OK);
    assert_fails(cvy_safetensors_find(file, "x", &desc, &data), CVY_ERR_DATA, "F4");
    assert_int_equal(cvy_safetensors_find(file, "y", &desc, &data), CVY_ERR_DATA);
    assert_fails(cvy_safetensors_find(file, "z", &desc, &data), CVY_ERR_DATA, "more than 6 dimensions");
    cvy_safetensors_free(file);
    free(bytes);
}

static void test_hostile_headers(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t n_data;
        const char *reason;
    } cases[] = {
        {"", 0, "not JSON"},
        {"hello", 0, "not JSON"},
        {"[1]", 0, "not JSON"},
        {"{\"a\":", 0, "not right at byte"},
        {"{} x", 0, "not right at byte"},
        {"{}", 5, "5 bytes at its end belong to no tensor"},
        {"{\"a\":7}", 0, "'a': it has no dtype"},
        {"{\"a\":{\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "'a': it has no dtype"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}", 1, "'a': its shape is not a list"},
        {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "'a': its shape is not a list"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", 1, "'a': dimension 0"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1.0],\"data_offsets\":[0,1]}}", 1, "'a': dimension 1"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[\"1\"],\"data_offsets\":[0,1]}}", 1, "'a': dimension 0"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
         "overflows"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0,4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
         "overflows"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}", 0,
         "do not fill"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[99999999999999999999],\"data_offsets\":[0,0]}}", 0, "too big"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "do not fill its 4 bytes"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0]}}", 2, "data_offsets"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":{\"0\":0}}}", 2, "data_offsets"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[-2,0]}}", 2, "'a': its bytes -2 to 0"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,0]}}", 2, "'a': its bytes 2 to 0"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 1, "'a': its bytes 0 to 2"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
         3, "'b': its bytes begin at 1, but those before it end at 2"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]}}",
         3, "'b': its bytes begin at 2, behind a gap that begins at 1"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
         2, "duplicate"},
        {"{\"__metadata__\":[]}", 0, "__metadata__"},
        {"{\"__metadata__\":{\"epoch\":3}}", 0, "'epoch' is not text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n_bytes;
        unsigned char *bytes = make_file(cases[i].header, cases[i].n_data, &n_bytes);
        assert_refused(bytes, n_bytes, cases[i].reason);
        free(bytes);
    }
}

static void test_every_truncation(void **state) {
    (void)state;
    size_t n_bytes;
    unsigned char *bytes =
        make_file("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, &n_bytes);
    for (size_t n = 0; n < n_bytes; n++)
        assert_refused(bytes, n, n < 8 ? "it has only" : "");
    for (int i = 0; i < 8; i++) /* header lengths behind the end, up to 2^64 - 1 */
        bytes[i] = 0xFF;
    assert_refused(bytes, n_bytes, "header has 18446744073709551615 bytes");
    free(bytes);
}

static void test_written_file_is_read(void **state) {
    (void)state;
    char path[] = "/tmp/convoy_safetensors_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    const float weight[] = {1, 2, 3, 4, 5, 6};
    const int64_t count[] = {42};
    const uint16_t half[] = {0x3C00};
    const struct cvy_safetensor tensors[] = {
        {.name = "b.weight", .desc = {CVY_F32, CVY_SHAPE(2, 3)}, .bytes = weight},
        {.name = "h", .desc = {CVY_F16, CVY_SHAPE(1)}, .bytes = half},
        {.name = "a.\"count\" é", .desc = {CVY_I64, {.n = 0}}, .bytes = count},
    };
    const struct cvy_safetensors_pair metadata[] = {{"model", "lenet5"}, {"classes", "[\"0\",\"1\"]"}};
    struct cvy_safetensors *file;
    struct cvy_desc desc;
    const void *data;
    assert_int_equal(cvy_safetensors_write(path, tensors, 3, metadata, 2), CVY_OK);
    assert_int_equal(cvy_safetensors_open(path, &file), CVY_OK);
    assert_int_equal(cvy_safetensors_count(file), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cvy_safetensors_find(file, tensors[i].name, &desc, &data), CVY_OK);
        assert_true(desc.dtype == tensors[i].desc.dtype);
        assert_true(cvy_shape_equal(&desc.shape, &tensors[i].desc.shape));
        assert_memory_equal(data, tensors[i].bytes, cvy_desc_bytes(&desc));
        assert_int_equal((uintptr_t)data % cvy_dtype_size(desc.dtype), 0);
    }
    assert_string_equal(cvy_safetensors_metadata(file, "classes"), metadata[1].value);
    cvy_safetensors_free(file);
    unlink(path);
}

static void test_empty_file_is_written(void **state) {
    (void)state;
    char path[] = "/tmp/convoy_safetensors_XXXXXX";
    struct cvy_safetensors *file;
    close(mkstemp(path));
    assert_int_equal(cvy_safetensors_write(path, NULL, 0, NULL, 0), CVY_OK);
    assert_int_equal(cvy_safetensors_open(path, &file), CVY_OK);
    assert_int_equal(cvy_safetensors_count(file), 0);
    assert_null(cvy_safetensors_metadata(file, "any"));
    cvy_safetensors_free(file);
    unlink(path);
}

static void test_refused_writing_leaves_nothing(void **state) {
    (void)state;
    const float value = 1;
    const struct cvy_safetensor tensors[] = {
        {.name = "twice", .desc = {CVY_F32, CVY_SHAPE(1)}, .bytes = &value},
        {.name = "twice", .desc = {CVY_F32, CVY_SHAPE(1)}, .bytes = &value},
        {.name = "__metadata__", .desc = {CVY_F32, CVY_SHAPE(1)}, .bytes = &value},
        {.name = "\xFF", .desc = {CVY_F32, CVY_SHAPE(1)}, .bytes = &value},
        {.name = "negative", .desc = {CVY_F32, CVY_SHAPE(-1)}, .bytes = &value},
    };
    char directory[] = "/tmp/convoy_safetensors_XXXXXX", path[64];
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/x", directory);
    assert_fails(cvy_safetensors_write(path, tensors, 2, NULL, 0), CVY_ERR_USAGE, "'twice' is taken");
    assert_non_null(strstr(cvy_error(), path));
    assert_int_equal(cvy_safetensors_write(path, tensors + 2, 1, NULL, 0), CVY_ERR_USAGE);
    assert_int_equal(cvy_safetensors_write(path, tensors + 3, 1, NULL, 0), CVY_ERR_USAGE);
    assert_int_equal(cvy_safetensors_write(path, tensors + 4, 1, NULL, 0), CVY_ERR_DATA);
    assert_int_equal(rmdir(directory), 0); /* it is empty */
    assert_int_equal(cvy_safetensors_write(path, tensors, 1, NULL, 0), CVY_ERR_IO);
}

static void test_missing_and_empty_files(void **state) {
    (void)state;
    struct cvy_safetensors *file;
    assert_fails(cvy_safetensors_open("/nowhere/w.safetensors", &file), CVY_ERR_DATA,
                 "/nowhere/w.safetensors: cannot be opened: No such file");
    assert_int_equal(cvy_safetensors_open("/tmp", &file), CVY_ERR_DATA);
    assert_int_equal(cvy_safetensors_open("/dev/null", &file), CVY_ERR_DATA);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_file),
        cmocka_unit_test(test_unknown_types_fail_when_touched),
        cmocka_unit_test(test_hostile_headers),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_written_file_is_read),
        cmocka_unit_test(test_empty_file_is_written),
        cmocka_unit_test(test_refused_writing_leaves_nothing),
        cmocka_unit_test(test_missing_and_empty_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

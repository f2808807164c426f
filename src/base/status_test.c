/* Errors: one line, its trace, its way between threads, exit codes. */
#include "base/status.h"
#include "cvy_test.h"

#include <pthread.h>
#include <string.h>

static cvy_status inner(int code) { return CVY_FAIL((cvy_status)code, "%s: number %d", "file.bin", 7); }

static cvy_status outer(int code) {
    CVY_TRY(inner(code));
    return CVY_OK;
}

static void test_message_and_trace(void **state) {
    (void)state;
    assert_int_equal(outer(CVY_ERR_DATA), CVY_ERR_DATA);
    assert_string_equal(cvy_error(), "file.bin: number 7");
    const char *first = strstr(cvy_error_trace(), "src/base/status_test.c:");
    assert_ptr_equal(first, cvy_error_trace());
    assert_non_null(strstr(first + 1, " < src/base/status_test.c:"));
    inner(CVY_ERR_IO); /* a new error starts a new trace */
    assert_null(strstr(cvy_error_trace(), " < "));
}

static void test_prefix(void **state) {
    (void)state;
    inner(CVY_ERR_DATA);
    assert_int_equal(cvy_fail_prefix(CVY_ERR_DATA, "epoch %d: ", 3), CVY_ERR_DATA);
    assert_string_equal(cvy_error(), "epoch 3: file.bin: number 7");
    CVY_FAIL(CVY_ERR_LOST, "again: %s", cvy_error()); /* the present message as an argument */
    assert_string_equal(cvy_error(), "again: epoch 3: file.bin: number 7");
}

static void test_long_and_strange_messages(void **state) {
    (void)state;
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    CVY_FAIL(CVY_ERR_DATA, "%s", text);
    size_t n = strlen(cvy_error());
    assert_true(n > 100 && n < 512);
    assert_string_equal(cvy_error() + n - 3, "...");
    for (size_t i = 0; i + 1 < sizeof text; i++)
        text[i] = i % 2 ? '\xA9' : '\xC3';
    for (int shift = 0; shift < 2; shift++) { /* never half a character, whatever stands before it */
        CVY_FAIL(CVY_ERR_DATA, "%s%s", shift ? "x" : "", text);
        n = strlen(cvy_error());
        assert_string_equal(cvy_error() + n - 3, "...");
        assert_int_equal((unsigned char)cvy_error()[n - 4], 0xA9);
    }
    CVY_FAIL(CVY_ERR_DATA, "%s: cannot be read", "two\nlines\x1B[2J");
    assert_string_equal(cvy_error(), "two?lines?[2J: cannot be read");
}

static void test_endless_trace_is_cut(void **state) {
    (void)state;
    inner(CVY_ERR_FAILED);
    for (int i = 0; i < 1000; i++)
        cvy_trace_add("/somewhere/src/base/x.c", i);
    size_t n = strlen(cvy_error_trace());
    assert_true(n > 900 && n < 1024);
    assert_true(cvy_error_trace()[n - 1] >= '0' && cvy_error_trace()[n - 1] <= '9'); /* whole places only */
}

static void *fail_there(void *into) {
    cvy_error_save(into, outer(CVY_ERR_NAN));
    return NULL;
}

static void test_error_between_threads(void **state) {
    (void)state;
    struct cvy_error error;
    pthread_t thread;
    CVY_FAIL(CVY_ERR_IO, "mine");
    assert_int_equal(pthread_create(&thread, NULL, fail_there, &error), 0);
    pthread_join(thread, NULL);
    assert_string_equal(cvy_error(), "mine"); /* each thread has its own */
    assert_int_equal(cvy_error_restore(&error), CVY_ERR_NAN);
    assert_string_equal(cvy_error(), "file.bin: number 7");
    assert_non_null(strstr(cvy_error_trace(), " < "));
}

static void test_exit_codes(void **state) {
    (void)state;
    static const int expected[][2] = {
        {CVY_OK, 0},         {CVY_END, 0},
        {CVY_ERR_FAILED, 1}, {CVY_ERR_USAGE, 2},
        {CVY_ERR_DATA, 3},   {CVY_ERR_LOST, 4},
        {CVY_ERR_MEMORY, 1}, {CVY_ERR_IO, 1},
        {CVY_ERR_NAN, 1},    {CVY_ERR_UNSUPPORTED, 1},
        {CVY_ERR_UNFIT, 5},  {CVY_INTERRUPTED, 130},
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(cvy_exit_code((cvy_status)expected[i][0]), expected[i][1]);
    assert_string_equal(cvy_version(), CVY_VERSION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message_and_trace),         cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_long_and_strange_messages), cmocka_unit_test(test_endless_trace_is_cut),
        cmocka_unit_test(test_error_between_threads),     cmocka_unit_test(test_exit_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

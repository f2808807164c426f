/* Whole files: read back what was written; a failure leaves neither a half file nor a temporary one. */
#include "base/file.h"
#include "cvy_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
    char name[32], file[64], tmp[128];
};

static int set_up(void **state) {
    struct folder *folder = calloc(1, sizeof *folder);
    strcpy(folder->name, "/tmp/convoy_file_XXXXXX");
    if (!mkdtemp(folder->name))
        return -1;
    snprintf(folder->file, sizeof folder->file, "%s/f", folder->name);
    snprintf(folder->tmp, sizeof folder->tmp, "%s.tmp", folder->file);
    *state = folder;
    return 0;
}

static int tear_down(void **state) {
    struct folder *folder = *state;
    unlink(folder->file);
    int failed = rmdir(folder->name); /* fails when something was left behind */
    free(folder);
    return failed;
}

static void test_write_and_read(void **state) {
    struct folder *folder = *state;
    char *bytes;
    size_t n;
    assert_int_equal(cvy_write_file(folder->file, "old contents", 12), CVY_OK);
    assert_int_equal(cvy_write_file(folder->file, "a\0b", 3), CVY_OK); /* replaces */
    assert_int_equal(cvy_read_file(folder->file, 3, &bytes, &n), CVY_OK);
    assert_int_equal(n, 3);
    assert_memory_equal(bytes, "a\0b\0", 4);
    free(bytes);
    assert_int_equal(cvy_read_file(folder->file, 2, &bytes, &n), CVY_ERR_DATA);
    assert_non_null(strstr(cvy_error(), "3 bytes, more than the 2"));
    assert_int_equal(cvy_write_file(folder->file, NULL, 0), CVY_OK);
    assert_int_equal(cvy_read_file(folder->file, 0, &bytes, &n), CVY_OK);
    assert_int_equal(n, 0);
    free(bytes);
}

static void test_unreadable(void **state) {
    struct folder *folder = *state;
    char *bytes;
    size_t n;
    assert_int_equal(cvy_read_file(folder->file, 10, &bytes, &n), CVY_ERR_DATA);
    assert_non_null(strstr(cvy_error(), folder->file));
    assert_int_equal(cvy_read_file(folder->name, 10, &bytes, &n), CVY_ERR_DATA);
    assert_non_null(strstr(cvy_error(), "is not a regular file"));
}

static void expect_real(const struct folder *folder, const char *below, const char *want) {
    char path[128], expected[128], *root, *real;
    assert_int_equal(cvy_real_path(folder->name, &root), CVY_OK);
    snprintf(path, sizeof path, "%s/%s", folder->name, below);
    snprintf(expected, sizeof expected, "%s%s", root, want);
    assert_int_equal(cvy_real_path(path, &real), CVY_OK);
    assert_string_equal(real, expected);
    free(root);
    free(real);
}

static void test_real_path(void **state) {
    const struct folder *folder = *state;
    char *real, *here;
    expect_real(folder, "", "");
    expect_real(folder, "new", "/new");
    expect_real(folder, "./new//deep//", "/new//deep");
    assert_int_equal(symlink(".", folder->file), 0);
    expect_real(folder, "f", "");
    expect_real(folder, "f/f/new/deep", "/new/deep");
    assert_int_equal(cvy_real_path("/", &real), CVY_OK);
    assert_string_equal(real, "/");
    free(real);
    assert_int_equal(cvy_real_path("/no-such/folder/", &real), CVY_OK);
    assert_string_equal(real, "/no-such/folder");
    free(real);
    assert_int_equal(cvy_real_path("no-such", &real), CVY_OK);
    assert_non_null(here = realpath(".", NULL));
    assert_memory_equal(real, here, strlen(here));
    assert_string_equal(real + strlen(here), "/no-such");
    free(real);
    free(here);
}

/* A FIFO without a writer would keep a reader waiting, and a rename would replace it by a file. */
static void test_fifo(void **state) {
    struct folder *folder = *state;
    struct stat info;
    char *bytes;
    size_t n;
    assert_int_equal(mkfifo(folder->file, 0600), 0);
    assert_int_equal(cvy_read_file(folder->file, 10, &bytes, &n), CVY_ERR_DATA);
    assert_non_null(strstr(cvy_error(), "is not a regular file"));
    assert_int_equal(cvy_write_file(folder->file, "x", 1), CVY_ERR_IO);
    assert_non_null(strstr(cvy_error(), "is not a regular file"));
    assert_int_equal(stat(folder->file, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
}

static void test_pieces(void **state) {
    struct folder *folder = *state;
    struct cvy_writer writer;
    char *bytes;
    size_t n;
    assert_int_equal(cvy_writer_begin(&writer, folder->file), CVY_OK);
    assert_int_equal(cvy_writer_append(&writer, "one ", 4), CVY_OK);
    assert_int_equal(access(folder->file, F_OK), -1); /* not before it is whole */
    assert_int_equal(cvy_writer_append(&writer, "two", 3), CVY_OK);
    assert_int_equal(cvy_writer_commit(&writer), CVY_OK);
    cvy_writer_abandon(&writer); /* nothing left to do */
    assert_int_equal(cvy_read_file(folder->file, 100, &bytes, &n), CVY_OK);
    assert_string_equal(bytes, "one two");
    free(bytes);
}

/* Many files may be begun and whole before the first appears: each takes no descriptor while it waits. */
static void test_closed(void **state) {
    struct folder *folder = *state;
    struct cvy_writer writer;
    char *bytes;
    size_t n;
    assert_int_equal(cvy_writer_begin(&writer, folder->file), CVY_OK);
    const int fd = writer.fd_plus_1 - 1;
    assert_int_equal(cvy_writer_append(&writer, "whole", 5), CVY_OK);
    assert_int_equal(cvy_writer_close(&writer), CVY_OK);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(access(folder->tmp, F_OK), 0);
    assert_int_equal(access(folder->file, F_OK), -1);
    cvy_writer_abandon(&writer);
    assert_int_equal(access(folder->tmp, F_OK), -1);
    assert_int_equal(cvy_writer_begin(&writer, folder->file), CVY_OK);
    assert_int_equal(cvy_writer_append(&writer, "whole", 5), CVY_OK);
    assert_int_equal(cvy_writer_close(&writer), CVY_OK);
    assert_int_equal(cvy_writer_commit(&writer), CVY_OK);
    assert_int_equal(cvy_read_file(folder->file, 100, &bytes, &n), CVY_OK);
    assert_string_equal(bytes, "whole");
    free(bytes);
}

static void test_abandoned(void **state) {
    struct folder *folder = *state;
    struct cvy_writer writer;
    assert_int_equal(cvy_writer_begin(&writer, folder->file), CVY_OK);
    assert_int_equal(cvy_writer_append(&writer, "half", 4), CVY_OK);
    assert_int_equal(access(folder->tmp, F_OK), 0);
    cvy_writer_abandon(&writer);
    assert_int_equal(access(folder->tmp, F_OK), -1);
    assert_int_equal(access(folder->file, F_OK), -1);
}

static void test_unwritable(void **state) {
    struct folder *folder = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/none/f", folder->name);
    assert_int_equal(cvy_write_file(path, "x", 1), CVY_ERR_IO);
    assert_non_null(strstr(cvy_error(), path));
    assert_int_equal(cvy_write_file(folder->name, "x", 1), CVY_ERR_IO); /* a folder cannot be replaced */
    snprintf(path, sizeof path, "%s.tmp", folder->name);
    assert_int_equal(access(path, F_OK), -1);
}

/* /dev/full refuses every write as a full disk does; as "f.tmp" it stands where the writer's file would. */
static void test_full_disk(void **state) {
    struct folder *folder = *state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_int_equal(symlink("/dev/full", folder->tmp), 0);
    assert_int_equal(cvy_write_file(folder->file, "x", 1), CVY_ERR_IO);
    assert_non_null(strstr(cvy_error(), "No space left on device"));
    assert_int_equal(access(folder->file, F_OK), -1);
    assert_int_equal(access(folder->tmp, F_OK), -1);
}

/* Two at once: each writes a file of its own, and the last to be renamed stays. */
static void test_shared(void **state) {
    struct folder *folder = *state;
    struct cvy_writer first, second, third;
    char *bytes;
    size_t n;
    assert_int_equal(cvy_writer_begin_shared(&first, folder->file), CVY_OK);
    assert_int_equal(cvy_writer_begin_shared(&second, folder->file), CVY_OK);
    assert_int_equal(cvy_writer_begin_shared(&third, folder->file), CVY_OK);
    assert_int_equal(cvy_writer_append(&first, "one", 3), CVY_OK);
    assert_int_equal(cvy_writer_append(&second, "two", 3), CVY_OK);
    cvy_writer_abandon(&third);
    assert_int_equal(cvy_writer_commit(&second), CVY_OK);
    assert_int_equal(cvy_writer_commit(&first), CVY_OK);
    assert_int_equal(cvy_read_file(folder->file, 3, &bytes, &n), CVY_OK);
    assert_memory_equal(bytes, "one", 4);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_write_and_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unreadable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_real_path, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fifo, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pieces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_closed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_abandoned, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unwritable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full_disk, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

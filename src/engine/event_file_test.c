/* TensorBoard's file, byte by byte: framing, checksums, events; how a run goes on in it. */
#include "base/file.h"
#include "engine/event_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct cvy_step_report step = {.epoch = 2,
                                            .n_epochs = 3,
                                            .step = 100,
                                            .n_steps = 150,
                                            .lr = 0.5,
                                            .metrics = {.loss = 1.25, .n = 32, .top1 = 16, .top5 = 30},
                                            .images_per_s = 640};

static int new_path(void **state) {
    char *path = strdup("/tmp/convoy-events-XXXXXX");
    int fd = path ? mkstemp(path) : -1;
    *state = path;
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state) {
    int result = unlink(*state);
    free(*state);
    return result;
}

/* CRC-32C's check value is 0xe3069283 for "123456789"; an iSCSI packet of 32 zeros has 0x8a9136aa. */
static void masked_crc(void **state) {
    (void)state;
    const char zeros[32] = {0};
    assert_int_equal(cvy_masked_crc("123456789", 9), (0xe3069283u >> 15 | 0xe3069283u << 17) + 0xa282ead8u);
    assert_int_equal(cvy_masked_crc(zeros, 32), (0x8a9136aau >> 15 | 0x8a9136aau << 17) + 0xa282ead8u);
}

/* The event of record k, with its length; checks all framing up to there. NULL beyond the last. */
static const uint8_t *record(const char *bytes, size_t n_bytes, int k, size_t *n) {
    for (size_t at = 0;; k--) {
        uint32_t crc;
        uint64_t length;
        if (at == n_bytes)
            return NULL;
        assert_true(at + 12 <= n_bytes);
        memcpy(&length, bytes + at, 8);
        memcpy(&crc, bytes + at + 8, 4);
        assert_int_equal(crc, cvy_masked_crc(bytes + at, 8));
        assert_true(at + 12 + length + 4 <= n_bytes);
        memcpy(&crc, bytes + at + 12 + length, 4);
        assert_int_equal(crc, cvy_masked_crc(bytes + at + 12, length));
        if (k == 0) {
            *n = length;
            return (const uint8_t *)bytes + at + 12;
        }
        at += 12 + length + 4;
    }
}

/* What stands behind an event's wall time, which is a double of field 1. */
static void expect(const char *bytes, size_t n_bytes, int k, const char *want, size_t n_want) {
    size_t n;
    const uint8_t *event = record(bytes, n_bytes, k, &n);
    assert_non_null(event);
    assert_int_equal(event[0], 0x09);
    assert_int_equal(n, 9 + n_want);
    assert_memory_equal(event + 9, want, n_want);
}

#define EXPECT(k, text) expect(bytes, n_bytes, k, text, sizeof(text) - 1)
#define VERSION \
    "\x1a\x0d"  \
    "brain.Event:2"
/* step 400, then a summary of four values of a tag and a float */
#define STEP                                    \
    "\x10\x90\x03\x2a\x4e"                      \
    "\x0a\x10\x0a\x09step/loss\x15\0\0\xa0\x3f" \
    "\x0a\x10\x0a\x09step/top1\x15\0\0\x48\x42" \
    "\x0a\x0e\x0a\x07step/lr\x15\0\0\0\x3f"     \
    "\x0a\x18\x0a\x11step/images_per_s\x15\0\0\x20\x44"

static void write_step(const char *path, bool is_new, int64_t update) {
    struct cvy_event_file *file;
    assert_int_equal(cvy_event_file_open(path, is_new, update, &file), CVY_OK);
    assert_int_equal(cvy_event_file_step(file, &step), CVY_OK);
    cvy_event_file_close(file);
}

static void records(void **state) {
    char *bytes;
    size_t n_bytes, n;
    write_step(*state, true, 0);
    assert_int_equal(cvy_read_file(*state, 1 << 20, &bytes, &n_bytes), CVY_OK);
    EXPECT(0, VERSION);
    EXPECT(1, STEP);
    assert_null(record(bytes, n_bytes, 2, &n));
    free(bytes);
}

/* A run that goes on at update 300, after a crash in the middle of a record. */
static void goes_on(void **state) {
    char *bytes;
    size_t n_bytes, n;
    write_step(*state, true, 0);
    assert_int_equal(cvy_read_file(*state, 1 << 20, &bytes, &n_bytes), CVY_OK);
    free(bytes);
    write_step(*state, false, 300);
    assert_int_equal(truncate(*state, (off_t)n_bytes + 20), 0);
    write_step(*state, false, 300);
    assert_int_equal(cvy_read_file(*state, 1 << 20, &bytes, &n_bytes), CVY_OK);
    EXPECT(0, VERSION);
    EXPECT(1, STEP);
    EXPECT(2, "\x10\xac\x02\x3a\x02\x08\x01"); /* step 300: SessionLog START */
    EXPECT(3, STEP);
    assert_null(record(bytes, n_bytes, 4, &n));
    free(bytes);
    write_step(*state, true, 0); /* anew */
    assert_int_equal(cvy_read_file(*state, 1 << 20, &bytes, &n_bytes), CVY_OK);
    EXPECT(1, STEP);
    assert_null(record(bytes, n_bytes, 2, &n));
    free(bytes);
}

static void full_disk(void **state) {
    (void)state;
    struct cvy_event_file *file;
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_int_equal(cvy_event_file_open("/dev/full", false, 0, &file), CVY_ERR_IO);
    assert_non_null(strstr(cvy_error(), "/dev/full"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masked_crc),
        cmocka_unit_test_setup_teardown(records, new_path, remove_path),
        cmocka_unit_test_setup_teardown(goes_on, new_path, remove_path),
        cmocka_unit_test(full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

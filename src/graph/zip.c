/* See zip.h. An archive ends with a record that says where its directory lies; the directory has a header per file, and
   each file a second, local header right before its bytes. Sizes of 2^32 and more lie in a zip64 field. */
#include "graph/zip.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define LL(x) ((unsigned long long)(x))

enum {
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    HEADER_BYTES = 46,
    LOCAL_BYTES = 30,
    MAX_COMMENT = 65535,
    ZIP64_FIELD = 1,
    IS_ENCRYPTED = 1,
};
#define END_SIGN 0x06054b50u
#define END64_SIGN 0x06064b50u
#define LOCATOR_SIGN 0x07064b50u
#define HEADER_SIGN 0x02014b50u
#define LOCAL_SIGN 0x04034b50u

static uint64_t number(const unsigned char *at, int n_bytes) {
    uint64_t value = 0;
    for (int i = n_bytes - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

struct directory {
    uint64_t place, n_bytes, n_files;
};

static cvy_status find_directory(const unsigned char *bytes, size_t n, struct directory *out) {
    size_t end = n;
    bool is_found = false;
    for (size_t back = END_BYTES; !is_found && back <= n && back <= END_BYTES + MAX_COMMENT; back++) {
        end = n - back;
        is_found = number(bytes + end, 4) == END_SIGN;
    }
    if (!is_found)
        return CVY_FAIL(CVY_ERR_DATA,
                        "not a whole zip archive: its directory is missing; was it copied to the end?");
    *out = (struct directory){.place = number(bytes + end + 16, 4),
                              .n_bytes = number(bytes + end + 12, 4),
                              .n_files = number(bytes + end + 10, 2)};
    const unsigned char *locator = end >= LOCATOR_BYTES ? bytes + end - LOCATOR_BYTES : NULL;
    if (locator && number(locator, 4) == LOCATOR_SIGN) {
        uint64_t place = number(locator + 8, 8);
        if (n < END64_BYTES || place > n - END64_BYTES || number(bytes + place, 4) != END64_SIGN)
            return CVY_FAIL(CVY_ERR_DATA, "its zip64 record is not where it should be");
        *out = (struct directory){.place = number(bytes + place + 48, 8),
                                  .n_bytes = number(bytes + place + 40, 8),
                                  .n_files = number(bytes + place + 32, 8)};
    }
    if (out->place > n || out->n_bytes > n - out->place || out->n_files > out->n_bytes / HEADER_BYTES)
        return CVY_FAIL(CVY_ERR_DATA, "its zip directory of %llu files does not lie within its %zu bytes",
                        LL(out->n_files), n);
    return CVY_OK;
}

/* The zip64 field holds, in this order, the numbers that have no room in the header. */
static void take_wide(const unsigned char *extra, size_t n, uint64_t *const wide[3]) {
    while (n >= 4) {
        size_t tag = number(extra, 2), size = number(extra + 2, 2);
        if (size > n - 4)
            return;
        const unsigned char *at = extra + 4;
        for (int i = 0; tag == ZIP64_FIELD && i < 3; i++) {
            if (*wide[i] == UINT32_MAX && size >= 8) {
                *wide[i] = number(at, 8);
                at += 8;
                size -= 8;
            }
        }
        n -= 4 + number(extra + 2, 2);
        extra += 4 + number(extra + 2, 2);
    }
}

/* The bytes follow the local header; what it repeats is not looked at. */
static cvy_status find_bytes(const unsigned char *bytes, size_t n, struct cvy_zip_entry *entry) {
    uint64_t place = entry->place;
    if (n < LOCAL_BYTES || place > n - LOCAL_BYTES || number(bytes + place, 4) != LOCAL_SIGN)
        return CVY_FAIL(CVY_ERR_DATA, "the file at byte %llu of its zip directory is not there", LL(place));
    uint64_t begin = place + LOCAL_BYTES + number(bytes + place + 26, 2) + number(bytes + place + 28, 2);
    if (begin > n || entry->n_bytes > n - begin)
        return CVY_FAIL(CVY_ERR_DATA, "its file of %llu bytes at byte %llu does not lie within its %zu bytes",
                        LL(entry->n_bytes), LL(begin), n);
    entry->bytes = bytes + begin;
    return CVY_OK;
}

/* 0: none was written, as PyTorch does on demand. A fuzzer would not get past it. */
static cvy_status check_sum(const struct cvy_zip_entry *entry, uint32_t want) {
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    if (want && crc32_z(0, entry->bytes, entry->n_bytes) != want)
        return CVY_FAIL(
            CVY_ERR_DATA,
            "is damaged: the checksum of its file of %llu bytes at byte %llu is not right; copy or "
            "download it again",
            LL(entry->n_bytes), LL(entry->place));
#else
    (void)entry;
    (void)want;
#endif
    return CVY_OK;
}

cvy_status cvy_zip_open(const unsigned char *bytes, size_t n_bytes, struct cvy_zip *out) {
    struct directory directory;
    CVY_TRY(find_directory(bytes, n_bytes, &directory));
    CVY_TRY(CVY_ALLOC(out->entries, directory.n_files));
    const unsigned char *at = bytes + directory.place;
    uint64_t left = directory.n_bytes, unclaimed = n_bytes;
    for (uint64_t i = 0; i < directory.n_files; i++) {
        if (left < HEADER_BYTES || number(at, 4) != HEADER_SIGN)
            return CVY_FAIL(CVY_ERR_DATA, "line %llu of its zip directory is not right", LL(i));
        size_t n_name = number(at + 28, 2), n_extra = number(at + 30, 2);
        size_t n_line = HEADER_BYTES + n_name + n_extra + number(at + 32, 2);
        if (n_line > left)
            return CVY_FAIL(CVY_ERR_DATA, "line %llu of its zip directory is cut", LL(i));
        struct cvy_zip_entry *entry = &out->entries[i];
        uint64_t packed = number(at + 20, 4);
        *entry = (struct cvy_zip_entry){.name = (const char *)at + HEADER_BYTES,
                                        .n_name = n_name,
                                        .n_bytes = number(at + 24, 4),
                                        .method = (uint16_t)number(at + 10, 2),
                                        .place = number(at + 42, 4)};
        take_wide(at + HEADER_BYTES + n_name, n_extra,
                  (uint64_t *const[]){&entry->n_bytes, &packed, &entry->place});
        if (entry->method != 0 || packed != entry->n_bytes || (number(at + 8, 2) & IS_ENCRYPTED))
            return CVY_FAIL(
                CVY_ERR_DATA,
                "its file %llu is compressed or encrypted; PyTorch stores them as they are: is it "
                "something else, or was it packed anew?",
                LL(i));
        CVY_TRY(find_bytes(bytes, n_bytes, entry));
        if (entry->n_bytes > unclaimed) /* no byte is summed twice: the time is bounded */
            return CVY_FAIL(CVY_ERR_DATA, "the files in it lie over one another");
        unclaimed -= entry->n_bytes;
        CVY_TRY(check_sum(entry, (uint32_t)number(at + 16, 4)));
        out->n++;
        at += n_line;
        left -= n_line;
    }
    return CVY_OK;
}

void cvy_zip_close(struct cvy_zip *zip) {
    free(zip->entries);
    *zip = (struct cvy_zip){0};
}

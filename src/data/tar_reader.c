/* The reader of tar archives. A member is a header of one block and its bytes, filled up to whole blocks; two blocks of
   zeros end the archive. Headers of type x (pax) and L (GNU) describe the member that follows them.
   Invariant: offset and offset + size of a member lie within the source. */
#include "data/tar_reader.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_EXTENDED = 1 << 16 }; /* bytes of an extended header; real ones have hundreds */

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6],
        version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == CVY_TAR_BLOCK, "a header is one block");

void cvy_tar_begin(struct cvy_tar *tar, const struct cvy_tar_source *source) {
    *tar = (struct cvy_tar){.source = source};
}

static cvy_status fail(int64_t at, const char *what) {
    return CVY_FAIL(CVY_ERR_DATA, "byte %lld: %s", (long long)at, what);
}

/* Octal digits between blanks, or, when the first bit is set, a number of base 256. False: neither, or too large. */
static bool parse_number(const char *field, size_t n, int64_t *out) {
    const unsigned char *bytes = (const unsigned char *)field;
    uint64_t value = 0;
    size_t i = 0;
    if (bytes[0] & 0x80) {
        value = bytes[0] & 0x7F;
        for (i = 1; i < n; i++) {
            if (value >> 55)
                return false;
            value = value << 8 | bytes[i];
        }
    } else {
        while (i < n && bytes[i] == ' ')
            i++;
        for (; i < n && bytes[i] >= '0' && bytes[i] <= '7'; i++)
            value = value << 3 | (bytes[i] - (unsigned)'0'); /* 12 digits: 36 bits */
        if (i < n && bytes[i] != ' ' && bytes[i] != '\0')
            return false;
    }
    *out = (int64_t)value;
    return value <= INT64_MAX;
}

/* The sum of all bytes, those of the sum itself taken as blanks. */
static bool is_sum_right(const struct header *header) {
    const unsigned char *bytes = (const unsigned char *)header;
    int64_t sum = 0, expected;
    for (size_t i = 0; i < sizeof *header; i++) {
        bool is_own = i >= offsetof(struct header, checksum) && i < offsetof(struct header, type);
        sum += is_own ? ' ' : bytes[i];
    }
    return parse_number(header->checksum, sizeof header->checksum, &expected) && sum == expected;
}

static bool is_zero(const struct header *header) {
    static const struct header zero;
    return memcmp(header, &zero, sizeof zero) == 0;
}

/* ---- names --------------------------------------------------------------------------------------- */

static cvy_status set_name(struct cvy_tar *tar, const char *name, size_t n) {
    if (n >= sizeof tar->name || memchr(name, '\0', n))
        return fail(tar->at, n >= sizeof tar->name ? "a name of more than 4095 bytes" : "a zero in a name");
    memcpy(tar->name, name, n);
    tar->name[n] = '\0';
    return CVY_OK;
}

/* Prefix and name of a plain header. */
static void join_name(struct cvy_tar *tar, const struct header *header) {
    size_t n_prefix =
        memcmp(header->magic, "ustar", 6) == 0 ? strnlen(header->prefix, sizeof header->prefix) : 0;
    size_t n_name = strnlen(header->name, sizeof header->name);
    char *to = tar->name;
    if (n_prefix) {
        memcpy(to, header->prefix, n_prefix);
        to[n_prefix] = '/';
        to += n_prefix + 1;
    }
    memcpy(to, header->name, n_name);
    to[n_name] = '\0';
}

static void strip_here(char *name) {
    size_t skip = 0;
    while (name[skip] == '.' && name[skip + 1] == '/') {
        skip += 2;
        skip += strspn(name + skip, "/");
    }
    memmove(name, name + skip, strlen(name + skip) + 1);
}

/* ---- extended headers ---------------------------------------------------------------------------- */

/* One record of pax, "LENGTH KEY=VALUE\n"; LENGTH counts all of it. */
static cvy_status read_record(struct cvy_tar *tar, char *record, size_t n) {
    char *blank = memchr(record, ' ', n), *end = record + n - 1;
    char *equal = blank ? memchr(blank, '=', (size_t)(end - blank)) : NULL;
    if (!equal || *end != '\n')
        return fail(tar->at, "a broken record of a pax header");
    *equal = *end = '\0';
    const char *key = blank + 1, *value = equal + 1;
    if (strcmp(key, "path") == 0) {
        CVY_TRY(set_name(tar, value, (size_t)(end - value)));
        tar->has_name = true;
    } else if (strcmp(key, "size") == 0) {
        char *stop;
        tar->next_size = strtoll(value, &stop, 10);
        if (stop == value || *stop || tar->next_size < 0)
            return fail(tar->at, "a broken size in a pax header");
        tar->has_size = true;
    }
    return CVY_OK;
}

static cvy_status read_pax(struct cvy_tar *tar, char *text, size_t n_bytes) {
    for (size_t at = 0; at < n_bytes;) {
        size_t n = 0, digits = 0;
        for (; at + digits < n_bytes && text[at + digits] >= '0' && text[at + digits] <= '9' && digits < 6;
             digits++)
            n = 10 * n + (size_t)(text[at + digits] - '0');
        if (!digits || n <= digits + 1 || n > n_bytes - at)
            return fail(tar->at, "a broken record of a pax header");
        CVY_TRY(read_record(tar, text + at, n));
        at += n;
    }
    return CVY_OK;
}

/* The bytes of a header of type x or L. */
static cvy_status read_extended(struct cvy_tar *tar, char type, int64_t offset, int64_t size) {
    char *text;
    if (size > MAX_EXTENDED)
        return fail(tar->at, "an extended header of more than 65536 bytes");
    text = malloc((size_t)size + 1);
    if (!text)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for a header of a tar archive");
    cvy_status status = tar->source->read(tar->source->context, offset, text, (size_t)size);
    text[size] = '\0';
    if (status == CVY_OK && type == 'x')
        status = read_pax(tar, text, (size_t)size);
    else if (status == CVY_OK) {
        status = set_name(tar, text, strlen(text));
        tar->has_name = true;
    }
    free(text);
    return status;
}

/* ---- members ------------------------------------------------------------------------------------- */

/* Checks the header and places what follows it; `size` is the header's own, or that of a pax header before it. */
static cvy_status place(const struct cvy_tar *tar, const struct header *header, int64_t *size,
                        int64_t *next) {
    int64_t offset = tar->at + CVY_TAR_BLOCK;
    if (!is_sum_right(header))
        return fail(tar->at, "no header of a tar archive (its check sum is wrong)");
    if (!parse_number(header->size, sizeof header->size, size))
        return fail(tar->at, "a broken size in a header");
    if (tar->has_size && header->type != 'x' && header->type != 'L' && header->type != 'K')
        *size = tar->next_size;
    if (header->type >= '1' && header->type <= '6')
        *size = 0; /* links, devices, folders: none has bytes */
    if (*size > tar->source->size - offset)
        return fail(tar->at, "the archive is cut off: it ends within this member");
    int64_t padded = *size % CVY_TAR_BLOCK ? *size + CVY_TAR_BLOCK - *size % CVY_TAR_BLOCK : *size;
    *next = padded > tar->source->size - offset ? tar->source->size : offset + padded;
    return CVY_OK;
}

cvy_status cvy_tar_next(struct cvy_tar *tar) {
    tar->has_name = tar->has_size = false;
    for (;;) {
        struct header header;
        int64_t size, next;
        if (tar->at == tar->source->size)
            return fail(tar->at, "the archive is cut off: it ends without its end mark, two blocks of zeros");
        if (tar->source->size - tar->at < CVY_TAR_BLOCK)
            return fail(tar->at, "the archive is cut off: it ends within a header");
        CVY_TRY(tar->source->read(tar->source->context, tar->at, &header, sizeof header));
        if (is_zero(&header))
            return CVY_END;
        CVY_TRY(place(tar, &header, &size, &next));
        int64_t offset = tar->at + CVY_TAR_BLOCK;
        if (header.type == 'x' || header.type == 'L')
            CVY_TRY(read_extended(tar, header.type, offset, size));
        tar->at = next;
        if (header.type == 'x' || header.type == 'L' || header.type == 'K' || header.type == 'g')
            continue;
        if (!tar->has_name)
            join_name(tar, &header);
        strip_here(tar->name);
        tar->is_file = header.type == '0' || header.type == '\0' || header.type == '7';
        tar->offset = offset;
        tar->size = size;
        return CVY_OK;
    }
}

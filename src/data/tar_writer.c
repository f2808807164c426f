/* A member is a header of 512 bytes and its content, filled up with zeros to a multiple of that; two blocks of zeros
   are the end. Times and owners are left at 0. */
#include "data/tar_writer.h"

#include "data/tar_reader.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 0, MODE = 100, SIZE = 124, TIME = 136, SUM = 148, TYPE = 156, MAGIC = 257, N_NAME = 100 };

static const char magic[8] = {'u', 's', 't', 'a', 'r', '\0', '0', '0'};
static const char zeros[2 * CVY_TAR_BLOCK];

static cvy_status append(struct cvy_tar_writer *tar, const void *bytes, size_t n_bytes) {
    CVY_TRY(cvy_writer_append(&tar->file, bytes, n_bytes));
    tar->n_bytes += (int64_t)n_bytes;
    return CVY_OK;
}

cvy_status cvy_tar_writer_begin(struct cvy_tar_writer *tar, const char *path) {
    *tar = (struct cvy_tar_writer){0};
    CVY_TRY(cvy_writer_begin(&tar->file, path));
    return CVY_OK;
}

cvy_status cvy_tar_writer_add(struct cvy_tar_writer *tar, const char *name, const void *bytes,
                              size_t n_bytes) {
    char header[CVY_TAR_BLOCK] = {0};
    unsigned sum = 0;
    assert(strlen(name) < N_NAME);
    snprintf(header + NAME, N_NAME, "%s", name);
    memcpy(header + MODE,
           "0000644\0"
           "0000000\0"
           "0000000",
           24); /* with owner and group */
    snprintf(header + SIZE, 12, "%011llo", (unsigned long long)n_bytes);
    snprintf(header + TIME, 12, "%011o", 0U);
    memset(header + SUM, ' ', 8);
    header[TYPE] = '0';
    memcpy(header + MAGIC, magic, sizeof magic);
    for (int i = 0; i < CVY_TAR_BLOCK; i++)
        sum += (unsigned char)header[i];
    snprintf(header + SUM, 8, "%06o", sum);
    CVY_TRY(append(tar, header, sizeof header));
    CVY_TRY(append(tar, bytes, n_bytes));
    CVY_TRY(append(tar, zeros, -n_bytes % CVY_TAR_BLOCK));
    return CVY_OK;
}

cvy_status cvy_tar_writer_end(struct cvy_tar_writer *tar) {
    CVY_TRY(append(tar, zeros, sizeof zeros));
    return CVY_OK;
}

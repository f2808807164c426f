/* The index of a shard that lies in a file: taken from the kept file, or made and kept. */
#include "base/file.h"
#include "base/text.h"
#include "data/cache.h"
#include "data/tar_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_KEPT = 1 << 30 };
static const char kind[8] = {'C', 'V', 'Y', 'T', 'A', 'R', '3', '\n'};

cvy_status cvy_tar_open(const char *path, int *fd, int64_t *size, int64_t *mtime) {
    struct stat info;
    size_t n_bytes;
    CVY_TRY(cvy_open_file(path, fd, &n_bytes));
    if (fstat(*fd, &info) != 0) {
        close(*fd);
        return CVY_FAIL(CVY_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    }
    *size = info.st_size;
    *mtime = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    return CVY_OK;
}

static bool load(const char *file, int64_t size, int64_t mtime, struct cvy_tar_index *out) {
    char *bytes;
    size_t n_bytes;
    if (!file || !cvy_cache_load(file, kind, MAX_KEPT, &bytes, &n_bytes))
        return false;
    if (cvy_tar_index_parse(bytes, n_bytes, out) && out->size == size && out->mtime == mtime) {
        out->bytes = bytes;
        return true;
    }
    free(bytes);
    *out = (struct cvy_tar_index){0};
    return false;
}

static cvy_status read_shard(void *context, int64_t offset, void *into, size_t n_bytes) {
    CVY_TRY(cvy_read_at(*(int *)context, "the archive", offset, into, n_bytes));
    return CVY_OK;
}

cvy_status cvy_tar_index_open(const char *path, struct cvy_tar_index *out) {
    struct cvy_text name = {0};
    char *beside = NULL, *cached = NULL;
    int64_t size, mtime;
    int fd;
    CVY_TRY(cvy_tar_open(path, &fd, &size, &mtime));
    cvy_status status;
    cvy_text_printf(&name, "%s.index", path);
    CVY_TRY_OUT(cvy_text_take(&name, &beside));
    CVY_TRY_OUT(cvy_cache_path(path, &cached));
    if (load(beside, size, mtime, out) || load(cached, size, mtime, out))
        goto out;
    const struct cvy_tar_source source = {read_shard, &fd, size};
    status = cvy_tar_index_scan(&source, mtime, out);
    if (status != CVY_OK) {
        status = cvy_fail_prefix(status, "%s: ", path);
        goto out;
    }
    if (!cvy_cache_store(beside, kind, out->bytes, out->n_bytes) && cached)
        (void)cvy_cache_store(cached, kind, out->bytes, out->n_bytes);
out:
    close(fd);
    free(beside);
    free(cached);
    return status;
}

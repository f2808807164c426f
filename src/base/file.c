/* Reading and writing of whole files. Invariant of a writer: while it has the name of a temporary file, that file
   exists and is ours; when it has none, after success or failure, the file is gone. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

cvy_status cvy_path(const char *dir, const char *name, const char *suffix, char **out) {
    if (asprintf(out, "%s/%s%s", dir, name, suffix) >= 0)
        return CVY_OK;
    *out = NULL;
    return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for the name %s/%s", dir, name);
}

cvy_status cvy_sync_folder(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return CVY_FAIL(CVY_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    int failed = fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP; /* a file system without it */
    cvy_status status =
        failed ? CVY_FAIL(CVY_ERR_IO, "%s: cannot be written: %s", path, strerror(errno)) : CVY_OK;
    close(fd);
    return status;
}

cvy_status cvy_read_at(int fd, const char *path, int64_t offset, void *into, size_t n_bytes) {
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = pread(fd, (char *)into + done, n_bytes - done, offset + (int64_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return CVY_FAIL(CVY_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
        if (n == 0)
            return CVY_FAIL(CVY_ERR_IO, "%s: became shorter while it was read", path);
        done += (size_t)n;
    }
    return CVY_OK;
}

static cvy_status make_folder(const char *path) {
    struct stat info;
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode)))
        return CVY_OK;
    int reason = errno == EEXIST ? ENOTDIR : errno;
    return CVY_FAIL(CVY_ERR_IO, "%s: cannot make this folder: %s", path, strerror(reason));
}

cvy_status cvy_make_folders_above(const char *path) {
    char *copy = strdup(path);
    if (!copy)
        return CVY_FAIL(CVY_ERR_MEMORY, "%s: out of memory", path);
    cvy_status status = CVY_OK;
    for (char *at = copy + 1; *copy && *at && status == CVY_OK; at++) {
        if (*at != '/')
            continue;
        *at = 0;
        status = make_folder(copy);
        *at = '/';
    }
    free(copy);
    return status;
}

cvy_status cvy_make_folder(const char *path) {
    CVY_TRY(cvy_make_folders_above(path));
    return make_folder(path);
}

cvy_status cvy_real_path(const char *path, char **out) {
    size_t n = strlen(path), n_rest;
    char *head = strdup(path), *real = NULL;
    while (head && !(real = realpath(n ? head : ".", NULL)) && n > 0) {
        while (n > 0 && head[n - 1] == '/') /* one name less */
            n--;
        while (n > 0 && head[n - 1] != '/')
            n--;
        head[n] = '\0';
    }
    free(head);
    if (!real)
        return CVY_FAIL(CVY_ERR_IO, "%s: where this lies cannot be found: %s", path, strerror(errno));
    for (n_rest = strlen(path + n); n_rest > 0 && path[n + n_rest - 1] == '/';)
        n_rest--;
    const char *between = n_rest > 0 && strcmp(real, "/") != 0 ? "/" : "";
    int length = asprintf(out, "%s%s%.*s", real, between, (int)n_rest, path + n);
    free(real);
    return length >= 0 ? CVY_OK : CVY_FAIL(CVY_ERR_MEMORY, "%s: out of memory", path);
}

/* A fault of what was named, not of the machine. */
static bool is_of_path(int reason) {
    return reason == ENOENT || reason == ENOTDIR || reason == ELOOP || reason == ENAMETOOLONG ||
           reason == EACCES || reason == EPERM;
}

bool cvy_is_same_file(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

cvy_status cvy_open_file(const char *path, int *out, size_t *n_bytes) {
    struct stat info;
    /* without O_NONBLOCK, opening a FIFO would wait for somebody to write to it */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return CVY_FAIL(is_of_path(errno) ? CVY_ERR_DATA : CVY_ERR_IO, "%s: cannot be opened: %s", path,
                        strerror(errno));
    cvy_status status = CVY_OK;
    if (fstat(fd, &info) != 0)
        status = CVY_FAIL(CVY_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    else if (!S_ISREG(info.st_mode))
        status = CVY_FAIL(CVY_ERR_DATA, "%s: is not a regular file", path);
    if (status != CVY_OK) {
        close(fd);
        return status;
    }
    *out = fd;
    *n_bytes = (size_t)info.st_size;
    return CVY_OK;
}

cvy_status cvy_map_file(const char *path, void **out, size_t *n_bytes) {
    cvy_status status = CVY_OK;
    int fd;
    CVY_TRY(cvy_open_file(path, &fd, n_bytes));
    if (*n_bytes == 0) {
        status = CVY_FAIL(CVY_ERR_DATA, "%s: is empty", path);
    } else {
        *out = mmap(NULL, *n_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (*out == MAP_FAILED)
            status = CVY_FAIL(CVY_ERR_IO, "%s: cannot be mapped: %s", path, strerror(errno));
    }
    close(fd);
    return status;
}

cvy_status cvy_read_piece(int fd, const char *path, int64_t offset, size_t n_bytes, char **out) {
    char *bytes = malloc(n_bytes + 1);
    if (!bytes)
        return CVY_FAIL(CVY_ERR_MEMORY, "%s: out of memory: no room for %zu bytes of it", path, n_bytes);
    cvy_status status = cvy_read_at(fd, path, offset, bytes, n_bytes);
    bytes[n_bytes] = '\0';
    if (status == CVY_OK)
        *out = bytes;
    else
        free(bytes);
    return status;
}

cvy_status cvy_read_file(const char *path, size_t max_bytes, char **out, size_t *n_bytes) {
    cvy_status status;
    int fd;
    size_t n;
    CVY_TRY(cvy_open_file(path, &fd, &n));
    if (n > max_bytes)
        status = CVY_FAIL(CVY_ERR_DATA, "%s: has %zu bytes, more than the %zu that are allowed here", path, n,
                          max_bytes);
    else
        status = cvy_read_piece(fd, path, 0, n, out);
    if (status == CVY_OK)
        *n_bytes = n;
    close(fd);
    return status;
}

cvy_status cvy_append_whole(int fd, const char *path, const void *bytes, size_t n_bytes) {
    off_t before = lseek(fd, 0, SEEK_END);
    ssize_t written = write(fd, bytes, n_bytes);
    int reason = written < 0 ? errno : ENOSPC;
    if (written == (ssize_t)n_bytes)
        return CVY_OK;
    if (before >= 0 && ftruncate(fd, before) != 0)
        reason = errno;
    return CVY_FAIL(CVY_ERR_IO, "%s: cannot be written: %s", path, strerror(reason));
}

void cvy_writer_abandon(struct cvy_writer *writer) {
    if (writer->fd_plus_1)
        close(writer->fd_plus_1 - 1);
    if (writer->tmp)
        unlink(writer->tmp);
    free(writer->path);
    free(writer->tmp);
    *writer = (struct cvy_writer){0};
}

/* Reports errno, which the clean-up must not change first. */
static cvy_status writer_fail(struct cvy_writer *writer, const char *what) {
    cvy_status status = CVY_FAIL(CVY_ERR_IO, "%s: %s: %s", writer->path, what, strerror(errno));
    cvy_writer_abandon(writer);
    return status;
}

/* Opens the temporary file path + suffix. */
static cvy_status begin(struct cvy_writer *writer, const char *path, const char *suffix, int flags) {
    struct stat info;
    char *tmp = NULL;
    *writer = (struct cvy_writer){.path = strdup(path)};
    if (!writer->path || asprintf(&tmp, "%s%s", path, suffix) < 0) {
        cvy_writer_abandon(writer);
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for the name of %s", path);
    }
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        free(tmp);
        cvy_writer_abandon(writer);
        return CVY_FAIL(CVY_ERR_IO,
                        "%s: is there already and is not a regular file: name another file to write", path);
    }
    int fd = open(tmp, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
    if (fd < 0) {
        cvy_status status = writer_fail(writer, "cannot be written");
        free(tmp);
        return status;
    }
    writer->fd_plus_1 = fd + 1;
    writer->tmp = tmp;
    return CVY_OK;
}

cvy_status cvy_writer_begin(struct cvy_writer *writer, const char *path) {
    CVY_TRY(begin(writer, path, ".tmp", O_TRUNC));
    return CVY_OK;
}

cvy_status cvy_writer_begin_shared(struct cvy_writer *writer, const char *path) {
    char suffix[64];
    uint64_t key = 0;
    *writer = (struct cvy_writer){0};
    if (getrandom(&key, sizeof key, 0) != sizeof key)
        return CVY_FAIL(CVY_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    snprintf(suffix, sizeof suffix, ".%016llx.tmp", (unsigned long long)key);
    CVY_TRY(begin(writer, path, suffix, O_EXCL));
    return CVY_OK;
}

cvy_status cvy_writer_append(struct cvy_writer *writer, const void *bytes, size_t n_bytes) {
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = write(writer->fd_plus_1 - 1, (const char *)bytes + done, n_bytes - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return writer_fail(writer, "cannot be written");
        done += (size_t)n;
    }
    return CVY_OK;
}

cvy_status cvy_writer_close(struct cvy_writer *writer) {
    const int fd = writer->fd_plus_1 - 1;
    if (fsync(fd) != 0 && errno != EINVAL) /* EINVAL: a file system without it */
        return writer_fail(writer, "cannot be written");
    writer->fd_plus_1 = 0;
    if (close(fd) != 0)
        return writer_fail(writer, "cannot be written");
    return CVY_OK;
}

cvy_status cvy_writer_commit(struct cvy_writer *writer) {
    if (writer->fd_plus_1)
        CVY_TRY(cvy_writer_close(writer));
    if (rename(writer->tmp, writer->path) != 0)
        return writer_fail(writer, "cannot be replaced");
    free(writer->tmp);
    writer->tmp = NULL; /* nothing is left to unlink */
    cvy_writer_abandon(writer);
    return CVY_OK;
}

cvy_status cvy_write_file(const char *path, const void *bytes, size_t n_bytes) {
    struct cvy_writer writer;
    CVY_TRY(cvy_writer_begin(&writer, path));
    CVY_TRY(cvy_writer_append(&writer, bytes, n_bytes));
    CVY_TRY(cvy_writer_commit(&writer));
    return CVY_OK;
}

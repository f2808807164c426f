/* Sets of image files. Files are opened when they are read, never when the set is made. */
#include "data/files.h"

#include "base/text.h"
#include "data/decode.h"
#include "data/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct cvy_file_set *set_of(const struct cvy_dataset *dataset) {
    return (struct cvy_file_set *)dataset;
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return cvy_time_ns(now);
}

cvy_status cvy_file_set_new(struct cvy_file_set **out) {
    CVY_TRY(CVY_ALLOC(*out, 1));
    (*out)->opened_ns = now_ns();
    cvy_dataset_set_rgb(&(*out)->head);
    return CVY_OK;
}

void cvy_file_set_free(struct cvy_dataset *dataset) {
    struct cvy_file_set *set = set_of(dataset);
    cvy_vec_free(&set->samples);
    cvy_pool_free(&set->pool);
    free(set->paths);
    free(set);
}

cvy_status cvy_file_set_label(const struct cvy_dataset *dataset, int64_t i, int64_t *out) {
    *out = set_of(dataset)->samples.data[i].label;
    return CVY_OK;
}

/* The clock of a file system may be ahead of ours, that of a server by a second or two. */
static const int64_t slack_ns = 3000000000;

/* A file that changes under way would make two epochs differ. A time to come does not mean a change. */
static cvy_status check_age(const struct cvy_file_set *set, const char *path, int fd) {
    struct stat info;
    if (fstat(fd, &info) != 0)
        return CVY_FAIL(CVY_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    const int64_t changed_ns = cvy_time_ns(info.st_mtim);
    if (changed_ns > set->opened_ns + slack_ns && changed_ns <= now_ns() + slack_ns)
        return CVY_FAIL(CVY_ERR_DATA, "%s: was changed since the data set was opened: start again", path);
    return CVY_OK;
}

cvy_status cvy_file_set_encoded(const struct cvy_dataset *dataset, int64_t i, char **out, size_t *n_bytes) {
    const char *path = set_of(dataset)->samples.data[i].path;
    cvy_status status;
    int fd;
    CVY_TRY(cvy_open_file(path, &fd, n_bytes));
    CVY_TRY_OUT(check_age(set_of(dataset), path, fd));
    if (*n_bytes > CVY_MAX_FILE_BYTES)
        status = CVY_FAIL(CVY_ERR_DATA, "%s: has %zu bytes, more than the %d that an image may have", path,
                          *n_bytes, CVY_MAX_FILE_BYTES);
    else
        status = cvy_read_piece(fd, path, 0, *n_bytes, out);
out:
    close(fd);
    return status;
}

const char *cvy_file_set_path(const struct cvy_dataset *dataset, int64_t i) {
    return set_of(dataset)->samples.data[i].path;
}

static const struct cvy_format files_format = {
    /* no spec leads here, so it is in no table */
    .prefix = "files",         .help = "files   a list of image files, without labels",
    .free = cvy_file_set_free, .encoded = cvy_file_set_encoded,
    .path = cvy_file_set_path,
};

/* What messages call the set: "a.jpg", or "a.jpg and 3 more". */
static cvy_status name_set(const char *const *paths, int64_t n, char **out) {
    struct cvy_text name = {0};
    cvy_text_printf(&name, "%s", paths[0]);
    if (n > 1)
        cvy_text_printf(&name, " and %lld more", (long long)(n - 1));
    return cvy_text_take(&name, out);
}

cvy_status cvy_dataset_open_files(const char *const *paths, int64_t n, cvy_dataset **out) {
    struct cvy_file_set *set;
    cvy_status status;
    if (n < 1)
        return CVY_FAIL(CVY_ERR_USAGE, "no image files are given");
    CVY_TRY(cvy_file_set_new(&set));
    set->head.format = &files_format;
    set->head.is_unlabelled = true;
    set->head.split = CVY_SPLIT_VAL;
    set->head.n = n;
    CVY_TRY_OUT(name_set(paths, n, &set->head.spec));
    for (int64_t i = 0; i < n; i++) {
        char *path;
        CVY_TRY_OUT(cvy_pool_strdup(&set->pool, paths[i], &path));
        CVY_TRY_OUT(cvy_vec_push(&set->samples, (struct cvy_file_sample){.path = path}));
    }
    *out = &set->head;
    return CVY_OK;
out:
    cvy_dataset_free(&set->head);
    return status;
}

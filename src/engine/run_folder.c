/* See run_folder.h. The lock is one of fcntl on DIR/lock: the kernel knows who holds it, and drops it with the
   process. The file stays: whoever removed it would open a gap between two runs that lock. */
#include "engine/run_folder.h"

#include "base/file.h"
#include "engine/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Is DIR/NAME a folder, or a file with something in it? */
static cvy_status is_there(const char *dir, const char *name, bool *out) {
    struct stat info;
    char *path;
    CVY_TRY(cvy_path(dir, name, "", &path));
    *out = stat(path, &info) == 0 && (S_ISDIR(info.st_mode) || info.st_size > 0);
    free(path);
    return CVY_OK;
}

/* Is `resume` the folder itself, a checkpoint in it, or "auto"? */
static cvy_status goes_on(const struct cvy_run_folder_options *o, bool *out) {
    char *around;
    *out = false;
    if (!o->resume)
        return CVY_OK;
    if (strcmp(o->resume, CVY_RESUME_AUTO) == 0) {
        *out = true;
        return CVY_OK;
    }
    CVY_TRY(cvy_path(o->resume, "..", "", &around));
    *out = cvy_is_same_file(o->resume, o->dir) || cvy_is_same_file(around, o->dir);
    free(around);
    return CVY_OK;
}

static cvy_status lock_file(struct cvy_run_folder *folder, const char *path,
                            const struct cvy_run_folder_options *o) {
    folder->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (folder->lock_fd < 0)
        return CVY_FAIL(CVY_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(folder->lock_fd, F_SETLK, &lock) == 0)
        return CVY_OK;
    bool is_held = errno == EACCES || errno == EAGAIN;
    if (!is_held)
        cvy_log(o->log, CVY_LOG_WARNING, "%s: cannot be locked (%s): let no other run write there", path,
                strerror(errno));
    else
        fcntl(folder->lock_fd, F_GETLK, &lock);
    close(folder->lock_fd);
    folder->lock_fd = -1;
    return is_held ? CVY_FAIL(CVY_ERR_IO, "another run (pid %ld) writes to %s: give another --output-dir",
                              (long)lock.l_pid, o->dir)
                   : CVY_OK;
}

/* What lies there already: nothing, the run that goes on, or one that may be overwritten. */
static cvy_status look_around(struct cvy_run_folder *folder, const struct cvy_run_folder_options *o) {
    bool has_last, has_best, has_metrics, is_own;
    CVY_TRY(is_there(o->dir, "last", &has_last));
    CVY_TRY(is_there(o->dir, "best", &has_best));
    CVY_TRY(is_there(o->dir, "metrics.jsonl", &has_metrics));
    CVY_TRY(goes_on(o, &is_own));
    if (is_own && o->overwrite)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--resume and --overwrite: %s is to go on, or to start anew; give one of them",
                        o->dir);
    if (is_own || !(has_last || has_best || has_metrics))
        return CVY_OK;
    folder->has_old_run = o->overwrite;
    if (o->overwrite)
        return CVY_OK;
    if (!has_last && !has_best)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "%s holds a run already, without a checkpoint to go on from: --overwrite starts "
                        "anew",
                        o->dir);
    return CVY_FAIL(CVY_ERR_USAGE,
                    "%s holds a run already: --resume %s%s goes on with it, --overwrite starts anew", o->dir,
                    o->dir, has_last ? "" : "/best");
}

cvy_status cvy_run_folder_open(struct cvy_run_folder *folder, const struct cvy_run_folder_options *options) {
    if (folder->dir)
        return CVY_OK;
    char *path;
    CVY_TRY(cvy_make_folder(options->dir));
    CVY_TRY(cvy_path(options->dir, "lock", "", &path));
    cvy_status status = lock_file(folder, path, options);
    free(path);
    CVY_TRY(status);
    folder->dir = options->dir;
    cvy_checkpoint_tidy(folder->dir, "last");
    cvy_checkpoint_tidy(folder->dir, "best");
    return look_around(folder, options);
}

void cvy_run_folder_close(struct cvy_run_folder *folder) {
    if (folder->dir && folder->lock_fd >= 0)
        close(folder->lock_fd);
    *folder = (struct cvy_run_folder){0};
}

void cvy_run_folder_drop_old(struct cvy_run_folder *folder) {
    if (folder->has_old_run)
        cvy_checkpoint_remove(folder->dir, "best");
    folder->has_old_run = false;
}

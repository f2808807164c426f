/* See quarantine.h. A file keeps its whole path below the new folder, so two never meet there, and it is plain where
   each came from. */
#include "data/quarantine.h"

#include "base/file.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

cvy_status cvy_quarantine_check(const struct cvy_dataset *dataset, const char *dir) {
    const char *colon = strchr(dataset->spec, ':');
    if (!dataset->format->finds_files || !colon)
        return CVY_FAIL(CVY_ERR_USAGE, "--fix: '%s' would still name what is moved; it is for folder:DIR",
                        dataset->spec);
    char *from = NULL, *to = NULL;
    cvy_status status;
    CVY_TRY_OUT(cvy_real_path(colon + 1, &from));
    CVY_TRY_OUT(cvy_real_path(dir, &to)); /* a folder made within the data set would be a class */
    const size_t n = strlen(from);
    if (strncmp(from, to, n) == 0 && (to[n] == '/' || !to[n]))
        status =
            CVY_FAIL(CVY_ERR_USAGE, "--fix move:%s: lies within the data set: name a folder beside it", dir);
    else if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        status = CVY_FAIL(CVY_ERR_IO, "%s: cannot be made: %s", dir, strerror(errno));
out:
    free(from);
    free(to);
    return status;
}

/* Appends the path without what leads upwards or to the root. */
static void append_below(struct cvy_text *to, const char *path) {
    while (*path) {
        size_t n = strcspn(path, "/");
        bool is_step = n == 0 || (n == 1 && path[0] == '.') || (n == 2 && path[0] == '.' && path[1] == '.');
        if (!is_step) {
            cvy_text_append(to, "/", 1);
            cvy_text_append(to, path, n);
        }
        path += n + (path[n] == '/');
    }
}

static cvy_status move_file(const char *from, const char *dir) {
    struct cvy_text text = {0};
    char *to;
    cvy_text_printf(&text, "%s", dir);
    append_below(&text, from);
    CVY_TRY(cvy_text_take(&text, &to));
    cvy_status status = cvy_make_folders_above(to);
    if (status == CVY_OK && renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) != 0)
        status =
            errno == EXDEV
                ? CVY_FAIL(CVY_ERR_IO, "%s: cannot be moved to %s: name a folder on the same disk", from, dir)
                : CVY_FAIL(CVY_ERR_IO, "%s: cannot be moved to %s: %s", from, to, strerror(errno));
    free(to);
    return status;
}

cvy_status cvy_quarantine_move(const struct cvy_audit *audit, const char *dir, int64_t *n_moved) {
    *n_moved = 0;
    for (size_t i = 0; i < audit->findings.n; i++) {
        const struct cvy_finding *finding = &audit->findings.data[i];
        if (!finding->stops || !finding->path)
            continue;
        CVY_TRY(move_file(finding->path, dir));
        ++*n_moved;
    }
    return CVY_OK;
}

/* Directory listings. The type of an entry comes with the listing where the file system tells it, so that
   50,000 files cost no call each; links and unknown entries are looked up. */
#include "data/scan.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 32 }; /* folders within folders; links may form circles */

enum kind { KIND_OTHER, KIND_FILE, KIND_FOLDER };

bool cvy_is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static enum kind kind_of(const struct dirent *entry, DIR *folder) {
    struct stat info;
    if (entry->d_type == DT_REG)
        return KIND_FILE;
    if (entry->d_type == DT_DIR)
        return KIND_FOLDER;
    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
        return KIND_OTHER;
    if (fstatat(dirfd(folder), entry->d_name, &info, 0) != 0)
        return KIND_OTHER; /* a link to nowhere */
    return S_ISREG(info.st_mode) ? KIND_FILE : S_ISDIR(info.st_mode) ? KIND_FOLDER : KIND_OTHER;
}

bool cvy_is_image_name(const char *name) {
    static const char *const extensions[] = {".jpg", ".jpeg", ".png", ".webp"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof extensions / sizeof *extensions; i++) {
        if (strcasecmp(dot, extensions[i]) == 0)
            return true;
    }
    return false;
}

int cvy_compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static cvy_status add_name(struct cvy_names *names, struct cvy_pool *pool, const char *name) {
    char *copy;
    CVY_TRY(cvy_pool_strdup(pool, name, &copy));
    CVY_TRY(cvy_vec_push(&names->names, copy));
    return CVY_OK;
}

/* Names right below `path`; `files` may be NULL. */
static cvy_status list(const char *path, struct cvy_pool *pool, struct cvy_names *folders,
                       struct cvy_names *files) {
    cvy_status status = CVY_OK;
    DIR *folder = opendir(path);
    if (!folder)
        return CVY_FAIL(CVY_ERR_DATA, "%s: cannot be opened as a folder: %s", path, strerror(errno));
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (!entry && errno) {
            status = CVY_FAIL(CVY_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
            goto out;
        }
        if (!entry)
            break;
        if (entry->d_name[0] == '.')
            continue;
        bool is_image = cvy_is_image_name(entry->d_name);
        enum kind kind = kind_of(entry, folder);
        if (kind == KIND_FOLDER)
            CVY_TRY_OUT(add_name(folders, pool, entry->d_name));
        else if (kind == KIND_FILE && is_image && files)
            CVY_TRY_OUT(add_name(files, pool, entry->d_name));
    }
out:
    closedir(folder);
    return status;
}

cvy_status cvy_scan_folders(const char *path, struct cvy_pool *pool, struct cvy_names *out) {
    cvy_status status = list(path, pool, out, NULL);
    if (status != CVY_OK)
        cvy_vec_free(&out->names);
    else if (out->names.n > 1)
        qsort(out->names.data, out->names.n, sizeof *out->names.data, cvy_compare_names);
    return status;
}

struct entry {
    const char *folder, *name;
};

struct entries {
    CVY_VEC(struct entry) all;
};

static int compare_entries(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    int order = strcmp(x->folder, y->folder);
    return order ? order : strcmp(x->name, y->name);
}

/* The images at and below `path`, unsorted. */
static cvy_status walk(const char *path, int depth, struct cvy_pool *pool, struct entries *out) {
    struct cvy_names folders = {0}, files = {0};
    cvy_status status;
    if (depth > MAX_DEPTH)
        return CVY_FAIL(CVY_ERR_DATA, "%s: folders are nested more than %d deep, is a link circular?", path,
                        MAX_DEPTH);
    CVY_TRY_OUT(list(path, pool, &folders, &files));
    for (size_t i = 0; i < files.names.n; i++)
        CVY_TRY_OUT(cvy_vec_push(&out->all, (struct entry){path, files.names.data[i]}));
    for (size_t i = 0; i < folders.names.n; i++) {
        char *child;
        CVY_TRY_OUT(cvy_pool_printf(pool, &child, "%s/%s", path, folders.names.data[i]));
        CVY_TRY_OUT(walk(child, depth + 1, pool, out));
    }
out:
    cvy_vec_free(&folders.names);
    cvy_vec_free(&files.names);
    return status;
}

cvy_status cvy_scan_images(const char *path, struct cvy_pool *pool, struct cvy_names *out) {
    struct entries found = {0};
    cvy_status status;
    CVY_TRY_OUT(walk(path, 0, pool, &found));
    if (found.all.n > 1)
        qsort(found.all.data, found.all.n, sizeof *found.all.data, compare_entries);
    for (size_t i = 0; i < found.all.n; i++) {
        char *image;
        CVY_TRY_OUT(cvy_pool_printf(pool, &image, "%s/%s", found.all.data[i].folder, found.all.data[i].name));
        CVY_TRY_OUT(cvy_vec_push(&out->names, image));
    }
out:
    cvy_vec_free(&found.all);
    if (status != CVY_OK)
        cvy_vec_free(&out->names);
    return status;
}

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

enum kind { KIND_OTHER, KIND_FILE, KIND_FOLDER, KIND_BROKEN };

bool cvy_is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

int64_t cvy_time_ns(struct timespec time) { return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec; }

static enum kind kind_of(const struct dirent *entry, DIR *folder) {
    struct stat info;
    if (entry->d_type == DT_REG)
        return KIND_FILE;
    if (entry->d_type == DT_DIR)
        return KIND_FOLDER;
    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
        return KIND_OTHER;
    if (fstatat(dirfd(folder), entry->d_name, &info, 0) != 0)
        return KIND_BROKEN;
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

static cvy_status add_entry(struct cvy_listing *out, struct cvy_pool *pool, const struct dirent *entry,
                            DIR *folder) {
    bool is_image = cvy_is_image_name(entry->d_name), is_hidden = entry->d_name[0] == '.';
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
        return CVY_OK;
    enum kind kind = kind_of(entry, folder);
    out->n_broken_links += kind == KIND_BROKEN;
    out->n_hidden_folders += is_hidden && kind == KIND_FOLDER;
    out->n_hidden_images += is_hidden && kind == KIND_FILE && is_image;
    if (!is_hidden && kind == KIND_FILE)
        cvy_others_count(&out->others, entry->d_name);
    if (!is_hidden && kind == KIND_FOLDER)
        CVY_TRY(add_name(&out->folders, pool, entry->d_name));
    /* a broken link or a pipe too: who reads it is told what is wrong */
    if (!is_hidden && kind != KIND_FOLDER && is_image)
        CVY_TRY(add_name(&out->files, pool, entry->d_name));
    return CVY_OK;
}

void cvy_listing_free(struct cvy_listing *listing) {
    cvy_vec_free(&listing->folders.names);
    cvy_vec_free(&listing->files.names);
}

cvy_status cvy_scan_folder(const char *path, struct cvy_pool *pool, struct cvy_listing *out) {
    cvy_status status = CVY_OK;
    struct stat info;
    DIR *folder = opendir(path);
    *out = (struct cvy_listing){0};
    if (!folder)
        return CVY_FAIL(CVY_ERR_DATA, "%s: cannot be opened as a folder: %s", path, strerror(errno));
    if (fstat(dirfd(folder), &info) != 0) {
        status = CVY_FAIL(CVY_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
        goto out;
    }
    out->mtime_ns = cvy_time_ns(info.st_mtim);
    out->ctime_ns = cvy_time_ns(info.st_ctim);
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (!entry && errno) {
            status = CVY_FAIL(CVY_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
            goto out;
        }
        if (!entry)
            break;
        CVY_TRY_OUT(add_entry(out, pool, entry, folder));
    }
out:
    closedir(folder);
    if (status != CVY_OK)
        cvy_listing_free(out);
    return status;
}

cvy_status cvy_scan_folders(const char *path, struct cvy_pool *pool, struct cvy_names *out) {
    struct cvy_listing listing;
    CVY_TRY(cvy_scan_folder(path, pool, &listing));
    cvy_vec_free(&listing.files.names);
    *out = listing.folders;
    if (out->names.n > 1)
        qsort(out->names.data, out->names.n, sizeof *out->names.data, cvy_compare_names);
    return CVY_OK;
}

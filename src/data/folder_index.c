/* Walks a folder of class folders, and keeps what it found. A folder that changed a moment ago may change again without
   its time telling, and a link that leads nowhere may come to life: then nothing is kept. */
#include "data/folder_index.h"

#include "base/text.h"
#include "data/cache.h"
#include "data/scan.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_DEPTH = 32 }; /* folders within folders; links may form circles */
enum { MAX_KEPT = 1 << 30 };
static const int64_t fresh_ns = 2000000000; /* file systems tell times as coarse as this */
static const char kind[8] = {'C', 'V', 'Y', 'D', 'I', 'R', '3', '\n'};

struct head {
    uint64_t n, n_hidden_folders, n_hidden_images, n_text;
    struct cvy_others others;
};

struct folder {
    const char *path; /* below the root */
    struct cvy_names files;
    int64_t mtime_ns, ctime_ns;
};

struct walk {
    const char *root;
    struct cvy_pool pool;
    CVY_VEC(struct folder) folders;
    struct head head;
    int64_t newest_ns; /* the latest change of a folder */
    bool has_broken_links;
};

/* ---- the walk ------------------------------------------------------------------------------------ */

static int compare_folders(const void *a, const void *b) {
    const struct folder *x = a, *y = b;
    return strcmp(x->path, y->path);
}

static void sort_names(struct cvy_names *names) {
    if (names->names.n > 1)
        qsort(names->names.data, names->names.n, sizeof *names->names.data, cvy_compare_names);
}

/* Lists one folder; the names of those in it go to `below`, which the caller frees. */
static cvy_status add_folder(struct walk *walk, const char *path, struct cvy_names *below) {
    struct cvy_listing listing;
    char *full;
    CVY_TRY(cvy_pool_printf(&walk->pool, &full, "%s%s%s", walk->root, *path ? "/" : "", path));
    CVY_TRY(cvy_scan_folder(full, &walk->pool, &listing));
    *below = listing.folders;
    if (!*path)
        cvy_vec_free(&listing.files.names); /* images beside the class folders are of no class */
    sort_names(below);
    sort_names(&listing.files);
    walk->head.n_hidden_folders += listing.n_hidden_folders;
    walk->head.n_hidden_images += *path ? listing.n_hidden_images : 0;
    if (*path)
        cvy_others_add(&walk->head.others, &listing.others);
    walk->has_broken_links |= listing.n_broken_links > 0;
    walk->newest_ns = listing.mtime_ns > walk->newest_ns ? listing.mtime_ns : walk->newest_ns;
    const struct folder folder = {path, listing.files, listing.mtime_ns, listing.ctime_ns};
    cvy_status status = cvy_vec_push(&walk->folders, folder);
    if (status != CVY_OK)
        cvy_vec_free(&listing.files.names);
    return status;
}

static cvy_status walk_folder(struct walk *walk, const char *path, int depth) {
    struct cvy_names below = {0};
    cvy_status status;
    if (depth > MAX_DEPTH)
        return CVY_FAIL(CVY_ERR_DATA, "%s/%s: folders are nested more than %d deep, is a link circular?",
                        walk->root, path, MAX_DEPTH);
    CVY_TRY_OUT(add_folder(walk, path, &below));
    for (size_t i = 0; i < below.names.n; i++) {
        char *child;
        size_t first = walk->folders.n;
        CVY_TRY_OUT(
            cvy_pool_printf(&walk->pool, &child, "%s%s%s", path, *path ? "/" : "", below.names.data[i]));
        CVY_TRY_OUT(walk_folder(walk, child, depth + 1));
        if (!*path) /* a whole class is there */
            qsort(walk->folders.data + first, walk->folders.n - first, sizeof *walk->folders.data,
                  compare_folders);
    }
out:
    cvy_vec_free(&below.names);
    return status;
}

/* ---- its form in the file ------------------------------------------------------------------------ */

static cvy_status pack(struct walk *walk, struct cvy_folder_index *out) {
    struct cvy_text text = {0}, bytes = {0};
    char *packed;
    size_t n_bytes;
    for (size_t k = 0; k < walk->folders.n; k++) {
        const struct folder *folder = &walk->folders.data[k];
        cvy_text_append(&text, folder->path, strlen(folder->path) + 1);
        for (size_t i = 0; i < folder->files.names.n; i++)
            cvy_text_append(&text, folder->files.names.data[i], strlen(folder->files.names.data[i]) + 1);
    }
    walk->head.n = walk->folders.n;
    walk->head.n_text = text.n;
    cvy_text_append(&bytes, (const char *)&walk->head, sizeof walk->head);
    for (size_t k = 0; k < walk->folders.n; k++) {
        const struct folder *folder = &walk->folders.data[k];
        const struct cvy_folder_stamp stamp = {folder->mtime_ns, folder->ctime_ns, folder->files.names.n};
        cvy_text_append(&bytes, (const char *)&stamp, sizeof stamp);
    }
    if (text.status == CVY_OK)
        cvy_text_append(&bytes, text.data, text.n);
    cvy_status status = text.status;
    cvy_text_free(&text);
    n_bytes = bytes.n;
    if (status != CVY_OK) {
        cvy_text_free(&bytes);
        return status;
    }
    CVY_TRY(cvy_text_take(&bytes, &packed));
    (void)cvy_folder_index_parse(packed, n_bytes, out);
    out->bytes = packed;
    return CVY_OK;
}

bool cvy_folder_index_parse(const char *bytes, size_t n_bytes, struct cvy_folder_index *out) {
    struct head head;
    uint64_t n_pieces = 0, n_found = 0;
    if (n_bytes < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    size_t rest = n_bytes - sizeof head;
    if (head.n == 0 || head.n > rest / sizeof *out->folders ||
        head.n_text != rest - head.n * sizeof *out->folders || head.n_text == 0 || bytes[n_bytes - 1] != '\0')
        return false;
    const struct cvy_folder_stamp *folders = (const void *)(bytes + sizeof head);
    for (size_t k = 0; k < head.n; k++) {
        if (folders[k].n_files > head.n_text)
            return false;
        n_pieces += 1 + folders[k].n_files; /* below 2^64: each is at most n_text, which is below 2^40 */
    }
    const char *text = bytes + n_bytes - head.n_text;
    for (const char *at = text; at < bytes + n_bytes; at += strlen(at) + 1)
        n_found++;
    if (n_found != n_pieces || *text || folders[0].n_files != 0)
        return false;
    *out = (struct cvy_folder_index){.n_hidden_folders = head.n_hidden_folders,
                                     .n_hidden_images = head.n_hidden_images,
                                     .others = head.others,
                                     .n = head.n,
                                     .folders = folders,
                                     .text = text,
                                     .n_text = head.n_text,
                                     .n_bytes = n_bytes};
    return true;
}

void cvy_folder_index_free(struct cvy_folder_index *index) {
    free(index->bytes);
    *index = (struct cvy_folder_index){0};
}

/* ---- the kept one -------------------------------------------------------------------------------- */

/* Are all folders as they were? */
static bool is_current(const char *root, const struct cvy_folder_index *index) {
    const char *at = index->text;
    struct cvy_text path = {0};
    bool is_same = true;
    for (size_t k = 0; k < index->n && is_same; k++) {
        struct stat info;
        path.n = 0;
        cvy_text_printf(&path, "%s/%s", root, at);
        is_same = path.status == CVY_OK && stat(path.data, &info) == 0 && S_ISDIR(info.st_mode) &&
                  cvy_time_ns(info.st_mtim) == index->folders[k].mtime_ns &&
                  cvy_time_ns(info.st_ctim) == index->folders[k].ctime_ns;
        for (uint64_t i = 0; i <= index->folders[k].n_files; i++)
            at += strlen(at) + 1;
    }
    cvy_text_free(&path);
    return is_same;
}

static bool load(const char *file, const char *root, struct cvy_folder_index *out) {
    char *bytes;
    size_t n_bytes;
    if (!cvy_cache_load(file, kind, MAX_KEPT, &bytes, &n_bytes))
        return false;
    if (cvy_folder_index_parse(bytes, n_bytes, out) && is_current(root, out)) {
        out->bytes = bytes;
        return true;
    }
    free(bytes);
    *out = (struct cvy_folder_index){0};
    return false;
}

cvy_status cvy_folder_index_open(const char *root, struct cvy_folder_index *out) {
    struct walk walk = {.root = root, .newest_ns = INT64_MIN};
    struct timespec now;
    char *file;
    clock_gettime(CLOCK_REALTIME_COARSE, &now); /* the clock of file systems */
    CVY_TRY(cvy_cache_path(root, &file));
    cvy_status status = CVY_OK;
    if (file && load(file, root, out))
        goto out;
    CVY_TRY_OUT(walk_folder(&walk, "", 0));
    CVY_TRY_OUT(pack(&walk, out));
    if (file && !walk.has_broken_links && walk.newest_ns < cvy_time_ns(now) - fresh_ns)
        (void)cvy_cache_store(file, kind, out->bytes, out->n_bytes);
out:
    for (size_t k = 0; k < walk.folders.n; k++)
        cvy_vec_free(&walk.folders.data[k].files.names);
    cvy_vec_free(&walk.folders);
    cvy_pool_free(&walk.pool);
    free(file);
    return status;
}

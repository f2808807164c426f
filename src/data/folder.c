/* folder:DIR, a folder of image files for each class, as torchvision's ImageFolder reads it: classes are the
   sorted folder names, samples are sorted by path within their class.
   Splits: DIR/train and DIR/val (or DIR/test) when any of them is there, the class list being that of train.
   Otherwise, and for val when only train is there, every tenth image of each class is held out.
   What lies there is kept from start to start (folder_index.h). */
#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "data/files.h"
#include "data/folder_index.h"
#include "data/scan.h"

#include <stdlib.h>
#include <string.h>

struct plan { /* where a split's images and its list of classes lie */
    const char *images, *classes;
    enum cvy_keep keep;
};

/* DIR/name when that is a folder, else NULL. */
static cvy_status find_part(struct cvy_pool *pool, const char *dir, const char *name, const char **out) {
    char *path;
    CVY_TRY(cvy_pool_printf(pool, &path, "%s/%s", dir, name));
    *out = cvy_is_folder(path) ? path : NULL;
    return CVY_OK;
}

static cvy_status plan_split(struct cvy_pool *pool, const char *dir, cvy_split split, const cvy_log_sink *log,
                             struct plan *out) {
    const char *train, *val;
    CVY_TRY(find_part(pool, dir, "train", &train));
    CVY_TRY(find_part(pool, dir, "val", &val));
    if (!val)
        CVY_TRY(find_part(pool, dir, "test", &val));
    if (split == CVY_SPLIT_TRAIN && val && !train)
        return CVY_FAIL(CVY_ERR_DATA, "%s: there is %s, but no train beside it to learn from", dir, val);
    if (val) {
        *out = (struct plan){split == CVY_SPLIT_VAL ? val : train, train ? train : val, CVY_KEEP_ALL};
        return CVY_OK;
    }
    const char *all = train ? train : dir;
    *out = (struct plan){all, all, split == CVY_SPLIT_VAL ? CVY_KEEP_HELD_OUT : CVY_KEEP_TRAIN};
    if (split == CVY_SPLIT_VAL)
        cvy_log(log, CVY_LOG_INFO, "%s has no val or test folder: every %dth image of each class is held out",
                dir, CVY_HOLD_OUT);
    return CVY_OK;
}

/* Names go into checkpoints and reports, which are JSON. */
static cvy_status check_class_name(const char *path, const char *name) {
    if (cvy_is_utf8(name))
        return CVY_OK;
    struct cvy_text text = {0};
    char *escaped;
    cvy_text_escape(&text, name);
    CVY_TRY(cvy_text_take(&text, &escaped));
    cvy_status status =
        CVY_FAIL(CVY_ERR_DATA, "%s/%s: the name of this class folder is not UTF-8: rename it", path, escaped);
    free(escaped);
    return status;
}

static cvy_status set_classes(struct cvy_dataset *head, const char *path, const struct cvy_names *classes) {
    if (classes->names.n == 0)
        return CVY_FAIL(CVY_ERR_DATA, "%s: holds no folders, one for each class is needed", path);
    for (size_t k = 0; k < classes->names.n; k++)
        CVY_TRY(check_class_name(path, classes->names.data[k]));
    CVY_TRY(cvy_dataset_name_classes(head, classes->names.data, classes->names.n));
    return CVY_OK;
}

/* Their names are sorted. */
static cvy_status find_class(const struct cvy_dataset *head, const struct plan *plan, const char *name,
                             int64_t *out) {
    char *const *found =
        bsearch(&name, head->class_names, (size_t)head->n_classes, sizeof name, cvy_compare_names);
    if (found) {
        *out = found - head->class_names;
        return CVY_OK;
    }
    return CVY_FAIL(CVY_ERR_DATA, "%s/%s: a class that %s lacks", plan->images, name, plan->classes);
}

/* Where the walk over an index stands. */
struct reader {
    const struct plan *plan;
    char *text;      /* where the next path goes */
    int64_t label;   /* of the class whose folders are read */
    int64_t *counts; /* images of each class */
};

/* Room for all paths and samples, no more: there may be millions. */
static cvy_status reserve(struct cvy_file_set *set, const struct cvy_folder_index *index,
                          struct reader *reader) {
    size_t n_root = strlen(reader->plan->images) + 1, n_bytes = 0, n_files = 0;
    const char *at = index->text;
    for (size_t k = 0; k < index->n; k++) {
        size_t n_path = strlen(at) + 1, n = index->folders[k].n_files;
        at += n_path;
        const char *first = at;
        for (size_t i = 0; i < n; i++)
            at += strlen(at) + 1;
        n_bytes += n * (n_root + n_path) + (size_t)(at - first);
        n_files += n;
    }
    CVY_TRY(cvy_alloc_items(n_bytes, 1, (void **)&set->paths));
    CVY_TRY(CVY_ALLOC(set->samples.data, n_files));
    set->samples.cap = n_files;
    reader->text = set->paths;
    CVY_TRY(CVY_ALLOC(reader->counts, (size_t)set->head.n_classes));
    return CVY_OK;
}

/* Folder k of the index, whose path and files stand at *at. */
static cvy_status add_folder(struct cvy_file_set *set, const struct cvy_folder_index *index, size_t k,
                             struct reader *reader, const char **at) {
    const char *path = *at;
    *at += strlen(path) + 1;
    if (k > 0 && !strchr(path, '/')) /* a class begins */
        CVY_TRY(find_class(&set->head, reader->plan, path, &reader->label));
    for (size_t i = 0; i < index->folders[k].n_files; i++) {
        if (cvy_is_kept(reader->plan->keep, reader->counts[reader->label]++)) {
            set->samples.data[set->samples.n++] = (struct cvy_file_sample){reader->text, reader->label};
            reader->text = stpcpy(reader->text, reader->plan->images);
            *reader->text++ = '/';
            reader->text = stpcpy(reader->text, path);
            *reader->text++ = '/';
            reader->text = stpcpy(reader->text, *at) + 1;
        }
        *at += strlen(*at) + 1;
    }
    return CVY_OK;
}

/* A class without images: nothing to learn from, or nothing to judge by. */
static cvy_status check_counts(const struct cvy_file_set *set, const struct plan *plan, const int64_t *counts,
                               uint64_t n_others, const cvy_log_sink *log) {
    enum { N_NAMED = 20 };
    struct cvy_text names = {0};
    long long n = 0;
    char *list;
    for (int64_t k = 0; k < set->head.n_classes; k++) {
        if (counts[k] == 0 && ++n <= N_NAMED) {
            cvy_text_printf(&names, "%s", n > 1 ? ", " : "");
            cvy_text_escape(&names, set->head.class_names[k]);
        }
    }
    if (n > N_NAMED)
        cvy_text_printf(&names, " and %lld more", n - N_NAMED);
    CVY_TRY(cvy_text_take(&names, &list));
    cvy_status status = CVY_OK;
    if (n && plan->images == plan->classes)
        status = CVY_FAIL(CVY_ERR_DATA,
                          "%s: %lld class folder%s without images (.jpg, .jpeg, .png, .webp): %s: %s",
                          plan->images, n, n == 1 ? "" : "s", list,
                          n_others ? "convert those of other formats, fill or remove" : "fill or remove");
    else if (n && n < set->head.n_classes)
        cvy_log(log, CVY_LOG_INFO, "%s: %lld of %lld classes have no images: %s", plan->images, n,
                (long long)set->head.n_classes, list);
    free(list);
    return status;
}

static cvy_status add_all(struct cvy_file_set *set, const struct plan *plan, const cvy_log_sink *log) {
    struct cvy_folder_index index = {0};
    struct reader reader = {.plan = plan};
    cvy_status status;
    CVY_TRY_OUT(cvy_folder_index_open(plan->images, &index));
    CVY_TRY_OUT(reserve(set, &index, &reader));
    const char *at = index.text;
    for (size_t k = 0; k < index.n; k++)
        CVY_TRY_OUT(add_folder(set, &index, k, &reader, &at));
    set->head.n = (int64_t)set->samples.n;
    if (plan->keep != CVY_KEEP_HELD_OUT)
        CVY_TRY_OUT(cvy_others_warn(&index.others, plan->images, log));
    CVY_TRY_OUT(check_counts(set, plan, reader.counts, cvy_others_total(&index.others), log));
    if (plan->keep != CVY_KEEP_HELD_OUT && index.n_hidden_images + index.n_hidden_folders > 0)
        cvy_log(log, CVY_LOG_INFO, "%s: hidden ones are left out: %llu images, %llu folders", plan->images,
                (unsigned long long)index.n_hidden_images, (unsigned long long)index.n_hidden_folders);
out:
    free(reader.counts);
    cvy_folder_index_free(&index);
    return status;
}

/* Fills the set; `classes` is the list of class folders, freed by the caller, its names are in `pool`. */
static cvy_status fill(struct cvy_file_set *set, const char *dir, cvy_split split, const cvy_log_sink *log,
                       struct cvy_pool *pool, struct cvy_names *classes) {
    struct plan plan;
    if (!*dir)
        return CVY_FAIL(CVY_ERR_USAGE, "data 'folder:': name the folder, as in folder:DIR");
    CVY_TRY(plan_split(pool, dir, split, log, &plan));
    CVY_TRY(cvy_scan_folders(plan.classes, pool, classes));
    CVY_TRY(set_classes(&set->head, plan.classes, classes));
    CVY_TRY(add_all(set, &plan, log));
    if (set->head.n == 0 && plan.keep == CVY_KEEP_HELD_OUT)
        return CVY_FAIL(CVY_ERR_DATA, "%s: no class has %d images, so none is held out: add %s/val", dir,
                        CVY_HOLD_OUT, dir);
    if (set->head.n == 0)
        return CVY_FAIL(CVY_ERR_DATA, "%s: holds no images in folders, one for each class", plan.images);
    return CVY_OK;
}

static cvy_status folder_open(const char *argument, cvy_split split, const cvy_log_sink *log,
                              struct cvy_dataset **out) {
    struct cvy_file_set *set;
    struct cvy_names classes = {0};
    struct cvy_pool pool = {0};
    CVY_TRY(cvy_file_set_new(&set));
    *out = &set->head;
    cvy_status status = fill(set, argument, split, log, &pool, &classes);
    cvy_vec_free(&classes.names);
    cvy_pool_free(&pool);
    return status;
}

/* Hidden folders are no classes. */
static cvy_status check_outside(const char *images, const char *real_dir, const char *dir) {
    char *root;
    CVY_TRY(cvy_real_path(images, &root));
    const size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);
    const char *below = real_dir + n;
    bool is_inside = strncmp(real_dir, root, n) == 0 && (!*below || *below == '/') && !strstr(below, "/.");
    free(root);
    if (!is_inside)
        return CVY_OK;
    return CVY_FAIL(CVY_ERR_USAGE, "%s: lies in %s, whose folders are read as classes: name one elsewhere",
                    dir, images);
}

static cvy_status folder_check_output(const char *argument, const char *dir) {
    static const cvy_split splits[] = {CVY_SPLIT_TRAIN, CVY_SPLIT_VAL};
    const cvy_log_sink silent = {0};
    struct cvy_pool pool = {0};
    char *real_dir;
    CVY_TRY(cvy_real_path(dir, &real_dir));
    cvy_status status = CVY_OK;
    for (int k = 0; k < 2 && status == CVY_OK; k++) {
        struct plan plan;
        /* what is not right with the data is said when they are opened */
        if (plan_split(&pool, argument, splits[k], &silent, &plan) == CVY_OK && cvy_is_folder(plan.images))
            status = check_outside(plan.images, real_dir, dir);
    }
    cvy_pool_free(&pool);
    free(real_dir);
    return status;
}

const struct cvy_format cvy_format_folder = {
    .prefix = "folder",
    .help = "folder:DIR   JPEG, PNG and WebP in class folders, with train/ and val/ or test/ below if there",
    .open = folder_open,
    .free = cvy_file_set_free,
    .encoded = cvy_file_set_encoded,
    .label = cvy_file_set_label,
    .path = cvy_file_set_path,
    .check_output = folder_check_output,
    .finds_files = true,
};

/* folder:DIR, a folder of image files for each class, as torchvision's ImageFolder reads it: classes are the
   sorted folder names, samples are sorted by path within their class.
   Splits: DIR/train and DIR/val (or DIR/test) when any of them is there, the class list being that of train.
   Otherwise, and for val when only train is there, every tenth image of each class is held out. */
#include "base/mem.h"
#include "base/text.h"
#include "data/files.h"
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

static cvy_status find_class(const struct cvy_dataset *head, const struct plan *plan, const char *name,
                             int64_t *out) {
    for (int64_t k = 0; k < head->n_classes; k++) {
        if (strcmp(head->class_names[k], name) == 0) {
            *out = k;
            return CVY_OK;
        }
    }
    return CVY_FAIL(CVY_ERR_DATA, "%s/%s: a class that %s lacks", plan->images, name, plan->classes);
}

static cvy_status add_class(struct cvy_file_set *set, const struct plan *plan, const char *name) {
    struct cvy_names images = {0};
    char *path;
    int64_t label;
    cvy_status status;
    CVY_TRY_OUT(find_class(&set->head, plan, name, &label));
    CVY_TRY_OUT(cvy_pool_printf(&set->pool, &path, "%s/%s", plan->images, name));
    CVY_TRY_OUT(cvy_scan_images(path, &set->pool, &images));
    if (images.names.n == 0) {
        status =
            CVY_FAIL(CVY_ERR_DATA,
                     "%s: a class folder without images (.jpg, .jpeg, .png, .webp): fill or remove it", path);
        goto out;
    }
    for (size_t i = 0; i < images.names.n; i++) {
        if (cvy_is_kept(plan->keep, (int64_t)i))
            CVY_TRY_OUT(cvy_vec_push(&set->samples, (struct cvy_file_sample){images.names.data[i], label}));
    }
out:
    cvy_vec_free(&images.names);
    return status;
}

/* Fills the set; `classes` and `present` are the lists of class folders, freed by the caller. */
static cvy_status fill(struct cvy_file_set *set, const char *dir, cvy_split split, const cvy_log_sink *log,
                       struct cvy_names *classes, struct cvy_names *present) {
    struct plan plan;
    if (!*dir)
        return CVY_FAIL(CVY_ERR_USAGE, "data 'folder:': name the folder, as in folder:DIR");
    CVY_TRY(plan_split(&set->pool, dir, split, log, &plan));
    CVY_TRY(cvy_scan_folders(plan.classes, &set->pool, classes));
    CVY_TRY(set_classes(&set->head, plan.classes, classes));
    CVY_TRY(cvy_scan_folders(plan.images, &set->pool, present));
    for (size_t k = 0; k < present->names.n; k++)
        CVY_TRY(add_class(set, &plan, present->names.data[k]));
    set->head.n = (int64_t)set->samples.n;
    if (set->head.n == 0 && plan.keep == CVY_KEEP_HELD_OUT)
        return CVY_FAIL(CVY_ERR_DATA, "%s: no class has %d images, so none is held out: add %s/val", dir,
                        CVY_HOLD_OUT, dir);
    if (set->head.n == 0)
        return CVY_FAIL(CVY_ERR_DATA, "%s: holds no folders, one for each class is needed", plan.images);
    return CVY_OK;
}

static cvy_status folder_open(const char *argument, cvy_split split, const cvy_log_sink *log,
                              struct cvy_dataset **out) {
    struct cvy_file_set *set;
    struct cvy_names classes = {0}, present = {0};
    CVY_TRY(cvy_file_set_new(&set));
    *out = &set->head;
    cvy_status status = fill(set, argument, split, log, &classes, &present);
    cvy_vec_free(&classes.names);
    cvy_vec_free(&present.names);
    return status;
}

const struct cvy_format cvy_format_folder = {
    .prefix = "folder",
    .help = "folder:DIR   JPEG, PNG and WebP in class folders, with train/ and val/ or test/ below if there",
    .open = folder_open,
    .free = cvy_file_set_free,
    .read = cvy_file_set_read,
    .read_part = cvy_file_set_read_part,
    .label = cvy_file_set_label,
    .path = cvy_file_set_path,
    .encoded = cvy_file_set_encoded,
};

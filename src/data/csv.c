/* csv:FILE, a list of image files: rows of path,label where the label is a class's number or its name, and paths are
   below the file's folder. The first row may name columns: path, label (or class), split (train, val), others are
   passed over; without it a third field that says train or val is the split. Without a split every tenth image of each
   class is held out, as in folder:. */
#include "base/mem.h"
#include "base/text.h"
#include "data/csv_rows.h"
#include "data/files.h"
#include "data/scan.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_BYTES = 1 << 30, MAX_CLASSES = 1000000, NO_COLUMN = -1 };

struct row {
    const char *path, *label; /* in the text, or in the pool */
    int64_t line, number;     /* of the class */
    bool is_val;
};

struct list {
    const char *file;
    struct columns {
        int path, label, split;
    } columns;
    bool has_names; /* in the first row */
    bool has_more;  /* fields in its rows, that no first row names */
    CVY_VEC(struct row) rows;
    CVY_VEC(const char *) names; /* of the classes, sorted; empty when labels are numbers */
    int64_t n_classes;
};

/* ---- rows ---------------------------------------------------------------------------------------- */

/* A name of training or validation? */
static bool is_split(const char *text, bool *is_val) {
    static const char *const names[] = {"val", "valid", "validation", "test"};
    *is_val = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        *is_val = *is_val || strcmp(text, names[i]) == 0;
    return *is_val || strcmp(text, "train") == 0;
}

/* Are these the names of columns? If not it is a row of path,label or of path,label,split. */
static bool find_columns(const struct cvy_csv *csv, struct columns *out) {
    struct columns found = {NO_COLUMN, NO_COLUMN, NO_COLUMN};
    for (int k = 0; k < csv->n; k++) {
        const char *name = csv->fields[k];
        if (strcasecmp(name, "path") == 0)
            found.path = k;
        else if (strcasecmp(name, "label") == 0 || strcasecmp(name, "class") == 0)
            found.label = k;
        else if (strcasecmp(name, "split") == 0)
            found.split = k;
    }
    bool is_header = found.path >= 0 && found.label >= 0, is_val;
    const int split = csv->n == 3 && is_split(csv->fields[2], &is_val) ? 2 : NO_COLUMN;
    *out = is_header ? found : (struct columns){0, 1, split};
    return is_header;
}

static cvy_status add_row(struct list *list, const struct cvy_csv *csv) {
    const struct columns *c = &list->columns;
    if (c->path >= csv->n || c->label >= csv->n || c->split >= csv->n)
        return CVY_FAIL(CVY_ERR_DATA, "%d field%s, a path and a label are needed", csv->n,
                        csv->n == 1 ? "" : "s");
    struct row row = {.path = csv->fields[c->path], .label = csv->fields[c->label], .line = csv->line};
    if (!*row.path || !*row.label)
        return CVY_FAIL(CVY_ERR_DATA, "the %s is empty", *row.path ? "label" : "path");
    if (!cvy_is_utf8(row.label))
        return CVY_FAIL(CVY_ERR_DATA, "the label is not UTF-8");
    if (c->split >= 0 && !is_split(csv->fields[c->split], &row.is_val))
        return CVY_FAIL(CVY_ERR_DATA, "split '%s': there are train and val", csv->fields[c->split]);
    list->has_more = list->has_more || (!list->has_names && c->split < 0 && csv->n > 2);
    CVY_TRY(cvy_vec_push(&list->rows, row));
    return CVY_OK;
}

static cvy_status read_rows(struct list *list, char *text, size_t n_bytes) {
    struct cvy_csv csv;
    cvy_csv_begin(&csv, text, n_bytes);
    for (bool is_first = true;; is_first = false) {
        cvy_status status = cvy_csv_next(&csv);
        if (status == CVY_END)
            break;
        if (status != CVY_OK)
            return cvy_fail_prefix(status, "%s: ", list->file);
        if (is_first)
            list->has_names = find_columns(&csv, &list->columns);
        if (is_first && list->has_names)
            continue;
        status = add_row(list, &csv);
        if (status != CVY_OK)
            return cvy_fail_prefix(status, "%s: line %lld: ", list->file, (long long)csv.line);
    }
    if (list->rows.n == 0)
        return CVY_FAIL(CVY_ERR_DATA, "%s: holds no rows of path,label", list->file);
    return CVY_OK;
}

/* ---- classes ------------------------------------------------------------------------------------- */

/* Numbers, when all labels are. */
static bool number_rows(struct list *list) {
    int64_t largest = 0;
    for (size_t i = 0; i < list->rows.n; i++) {
        struct row *row = &list->rows.data[i];
        if (!cvy_parse_i64(row->label, &row->number) || row->number < 0 || row->number >= MAX_CLASSES)
            return false;
        largest = row->number > largest ? row->number : largest;
    }
    list->n_classes = largest + 1;
    return true;
}

/* Names: the classes are the different labels, sorted. */
static cvy_status name_rows(struct list *list) {
    for (size_t i = 0; i < list->rows.n; i++)
        CVY_TRY(cvy_vec_push(&list->names, list->rows.data[i].label));
    qsort(list->names.data, list->names.n, sizeof *list->names.data, cvy_compare_names);
    size_t n = 1;
    for (size_t i = 1; i < list->names.n; i++) {
        if (strcmp(list->names.data[n - 1], list->names.data[i]) != 0)
            list->names.data[n++] = list->names.data[i];
    }
    list->names.n = n;
    list->n_classes = (int64_t)n;
    if (n > MAX_CLASSES)
        return CVY_FAIL(CVY_ERR_DATA, "%s: %zu different labels, more than %d", list->file, n, MAX_CLASSES);
    for (size_t i = 0; i < list->rows.n; i++) {
        const char *const *found =
            bsearch(&list->rows.data[i].label, list->names.data, n, sizeof *found, cvy_compare_names);
        list->rows.data[i].number = found - (const char *const *)list->names.data;
    }
    return CVY_OK;
}

static cvy_status set_classes(struct list *list, struct cvy_dataset *head) {
    if (number_rows(list)) {
        CVY_TRY(cvy_dataset_number_classes(head, list->n_classes));
        return CVY_OK;
    }
    CVY_TRY(name_rows(list));
    CVY_TRY(cvy_dataset_name_classes(head, list->names.data, list->names.n));
    return CVY_OK;
}

/* ---- samples ------------------------------------------------------------------------------------- */

/* Files are said below the list's own folder, or from the root on. */
static cvy_status place(const struct list *list, struct cvy_pool *pool, const char *path, char **out) {
    const char *slash = strrchr(list->file, '/');
    int n = path[0] != '/' && slash ? (int)(slash - list->file + 1) : 0;
    CVY_TRY(cvy_pool_printf(pool, out, "%.*s%s", n, list->file, path));
    return CVY_OK;
}

static cvy_status add_samples(struct cvy_file_set *set, const struct list *list, cvy_split split) {
    int64_t *seen = NULL; /* images of each class so far */
    cvy_status status;
    CVY_TRY_OUT(CVY_ALLOC(seen, (size_t)list->n_classes));
    for (size_t i = 0; i < list->rows.n; i++) {
        const struct row *row = &list->rows.data[i];
        char *path;
        bool is_val = list->columns.split >= 0 ? row->is_val : cvy_is_held_out(seen[row->number]++);
        if (is_val != (split == CVY_SPLIT_VAL))
            continue;
        CVY_TRY_OUT(place(list, &set->pool, row->path, &path));
        CVY_TRY_OUT(cvy_vec_push(&set->samples, (struct cvy_file_sample){path, row->number}));
    }
    set->head.n = (int64_t)set->samples.n;
    if (set->head.n == 0 && list->columns.split >= 0)
        status = CVY_FAIL(CVY_ERR_DATA, "%s: no row has the split %s", list->file,
                          split == CVY_SPLIT_VAL ? "val" : "train");
    else if (set->head.n == 0)
        status = CVY_FAIL(CVY_ERR_DATA, "%s: no class has %d images, so none is held out: add a column split",
                          list->file, CVY_HOLD_OUT);
out:
    free(seen);
    return status;
}

/* `text` is released by the caller, in any case. */
static cvy_status fill(struct cvy_file_set *set, struct list *list, cvy_split split, const cvy_log_sink *log,
                       char **text) {
    size_t n_bytes;
    if (!*list->file)
        return CVY_FAIL(CVY_ERR_USAGE, "data 'csv:': name the file, as in csv:FILE");
    CVY_TRY(cvy_read_file(list->file, MAX_BYTES, text, &n_bytes));
    CVY_TRY(read_rows(list, *text, n_bytes));
    CVY_TRY(set_classes(list, &set->head));
    CVY_TRY(add_samples(set, list, split));
    if (split == CVY_SPLIT_TRAIN && list->has_more)
        cvy_log(log, CVY_LOG_WARNING,
                "%s: fields after path,label are passed over: for a split let the first row be "
                "path,label,split, or the third field of all rows train or val",
                list->file);
    if (split == CVY_SPLIT_VAL && list->columns.split < 0)
        cvy_log(log, CVY_LOG_INFO, "%s has no column split: every %dth image of each class is held out",
                list->file, CVY_HOLD_OUT);
    return CVY_OK;
}

static cvy_status csv_open(const char *argument, cvy_split split, const cvy_log_sink *log,
                           struct cvy_dataset **out) {
    struct cvy_file_set *set;
    struct list list = {.file = argument};
    char *text = NULL;
    CVY_TRY(cvy_file_set_new(&set));
    *out = &set->head;
    cvy_status status = fill(set, &list, split, log, &text);
    free(text);
    cvy_vec_free(&list.rows);
    cvy_vec_free(&list.names);
    return status;
}

const struct cvy_format cvy_format_csv = {
    .prefix = "csv",
    .help = "csv:FILE   rows of path,label[,split (train, val)] of JPEG, PNG and WebP files; paths are below "
            "FILE's folder",
    .open = csv_open,
    .free = cvy_file_set_free,
    .encoded = cvy_file_set_encoded,
    .label = cvy_file_set_label,
    .path = cvy_file_set_path,
};

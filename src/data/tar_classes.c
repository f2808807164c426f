/* How labels of shards become classes. A list rules, and a .cls is then a place in the list of its own shard, or a
   name; without one, a .cls in each shard that is a number is the class itself; else labels are names, sorted. */
#include "data/tar_classes.h"

#include "base/text.h"
#include "data/scan.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CLASSES = 1000000 };

struct lines {
    CVY_VEC(char *) all; /* in `text` */
    char *text;
};

static void free_lines(struct lines *lines) {
    cvy_vec_free(&lines->all);
    free(lines->text);
}

static cvy_status split_lines(const char *list, struct lines *out) {
    out->text = strdup(list);
    if (!out->text)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for the names of the classes");
    for (char *line = out->text; *line;) {
        char *end = line + strcspn(line, "\n"), *next = *end ? end + 1 : end;
        *end = '\0';
        if (end > line && end[-1] == '\r')
            end[-1] = '\0';
        CVY_TRY(cvy_vec_push(&out->all, line));
        line = next;
    }
    return CVY_OK;
}

static const char *label_of(const struct cvy_tar_index *index, size_t i) {
    return index->text + index->samples[i].label;
}

static int compare_classes(const void *a, const void *b) {
    const struct cvy_tar_class *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static cvy_status fail_label(const struct cvy_tar_shard *shard, size_t i) {
    const struct cvy_tar_sample *sample = &shard->index.samples[i];
    const char *name = shard->index.text + sample->name, *label = label_of(&shard->index, i);
    if (!*label)
        return CVY_FAIL(CVY_ERR_DATA, "%s: %s: has neither a .cls nor a folder that names its class",
                        shard->path, name);
    return CVY_FAIL(CVY_ERR_DATA, "%s: %s: '%.100s' is none of the classes of the training set", shard->path,
                    name, label);
}

/* ---- the classes of a set -------------------------------------------------------------------------- */

/* True, and the largest, when every label is a number that a .cls says. */
static bool are_numbers(const struct cvy_tar_shard *shards, size_t n, int64_t *largest) {
    *largest = -1;
    for (size_t s = 0; s < n; s++) {
        for (size_t i = 0; i < shards[s].index.n; i++) {
            int64_t k;
            if (!shards[s].index.samples[i].is_said || !cvy_parse_i64(label_of(&shards[s].index, i), &k) ||
                k < 0 || k >= MAX_CLASSES)
                return false;
            *largest = k > *largest ? k : *largest;
        }
    }
    return true;
}

static cvy_status name_classes(const struct cvy_tar_shard *shards, size_t n, struct cvy_dataset *head) {
    CVY_VEC(const char *) names = {0};
    cvy_status status = CVY_OK;
    for (size_t s = 0; s < n; s++) {
        for (size_t i = 0; i < shards[s].index.n; i++) {
            const char *label = label_of(&shards[s].index, i);
            if (!*label) {
                status = fail_label(&shards[s], i);
                goto out;
            }
            CVY_TRY_OUT(cvy_vec_push(&names, label));
        }
    }
    qsort(names.data, names.n, sizeof *names.data, cvy_compare_names);
    size_t kept = 1;
    for (size_t i = 1; i < names.n; i++) {
        if (strcmp(names.data[kept - 1], names.data[i]) != 0)
            names.data[kept++] = names.data[i];
    }
    status = kept > MAX_CLASSES ? CVY_FAIL(CVY_ERR_DATA, "%s: %zu different labels, more than %d",
                                           shards[0].path, kept, MAX_CLASSES)
                                : cvy_dataset_name_classes(head, names.data, kept);
out:
    cvy_vec_free(&names);
    return status;
}

static cvy_status list_classes(const struct cvy_tar_shard *shard, struct cvy_dataset *head) {
    struct lines lines = {0};
    cvy_status status;
    CVY_TRY_OUT(split_lines(shard->index.classes, &lines));
    CVY_TRY_OUT(cvy_dataset_name_classes(head, (const char *const *)lines.all.data, lines.all.n));
out:
    free_lines(&lines);
    return status;
}

cvy_status cvy_tar_classes_find(const struct cvy_tar_shard *shards, size_t n, struct cvy_dataset *head,
                                struct cvy_tar_classes *out) {
    int64_t largest = -1;
    size_t n_samples = 0;
    for (size_t s = 0; s < n; s++)
        n_samples += shards[s].index.n;
    if (n_samples == 0)
        return CVY_FAIL(CVY_ERR_DATA, "%s: holds no images (.jpg, .jpeg, .png, .webp)", shards[0].path);
    *out = (struct cvy_tar_classes){0};
    if (*shards[0].index.classes) {
        CVY_TRY(list_classes(&shards[0], head));
    } else if (are_numbers(shards, n, &largest)) {
        out->are_numbers = true;
        CVY_TRY(cvy_dataset_number_classes(head, largest + 1));
    } else {
        CVY_TRY(name_classes(shards, n, head));
    }
    out->n = head->n_classes;
    for (int64_t k = 0; k < out->n; k++)
        CVY_TRY(cvy_vec_push(&out->sorted, (struct cvy_tar_class){head->class_names[k], k}));
    qsort(out->sorted.data, out->sorted.n, sizeof *out->sorted.data, compare_classes);
    for (size_t k = 1; k < out->sorted.n; k++) {
        if (strcmp(out->sorted.data[k - 1].name, out->sorted.data[k].name) == 0)
            return CVY_FAIL(CVY_ERR_DATA, "%s: " CVY_TAR_CLASSES " names the class '%.100s' twice",
                            shards[0].path, out->sorted.data[k].name);
    }
    return CVY_OK;
}

/* ---- the labels of a shard ------------------------------------------------------------------------- */

/* -1: no class. */
static int64_t find(const struct cvy_tar_classes *classes, const struct lines *lines, const char *label,
                    bool is_said) {
    int64_t k;
    bool is_number = is_said && cvy_parse_i64(label, &k);
    if (is_number && lines->all.n) {
        if (k < 0 || (uint64_t)k >= lines->all.n)
            return -1;
        label = lines->all.data[k];
    } else if (classes->are_numbers) {
        return is_number && k >= 0 && k < classes->n ? k : -1;
    }
    const struct cvy_tar_class key = {.name = label};
    const struct cvy_tar_class *found =
        bsearch(&key, classes->sorted.data, classes->sorted.n, sizeof *classes->sorted.data, compare_classes);
    return found ? found->number : -1;
}

cvy_status cvy_tar_classes_label(const struct cvy_tar_classes *classes, const struct cvy_tar_shard *shard,
                                 int32_t *labels) {
    const struct cvy_tar_index *index = &shard->index;
    struct lines lines = {0};
    cvy_status status;
    CVY_TRY_OUT(split_lines(index->classes, &lines));
    for (size_t i = 0; i < index->n; i++) {
        int64_t k = find(classes, &lines, label_of(index, i), index->samples[i].is_said);
        if (k < 0) {
            status = fail_label(shard, i);
            goto out;
        }
        labels[i] = (int32_t)k;
    }
out:
    free_lines(&lines);
    return status;
}

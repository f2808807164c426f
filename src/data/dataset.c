/* Data sets by spec, "PREFIX:ARGUMENT": finds the format of formats.def and hands out what all formats share.
   Invariant: a data set that was given out has its format, spec, split and, unless unlabelled, class names. */
#include "base/mem.h"
#include "base/text.h"
#include "data/data.h"
#include "data/decode.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CVY_FORMAT(name) extern const struct cvy_format cvy_format_##name;
#include "data/formats.def"
#undef CVY_FORMAT

static const struct cvy_format *const table[] = {
#define CVY_FORMAT(name) &cvy_format_##name,
#include "data/formats.def"
#undef CVY_FORMAT
};

enum { N_FORMATS = sizeof table / sizeof *table };

const struct cvy_format *const *cvy_format_table(size_t *n) {
    *n = N_FORMATS;
    return table;
}

const struct cvy_format *cvy_format_find(const char *spec) {
    const size_t n = strcspn(spec, ":");
    for (size_t i = 0; i < N_FORMATS; i++)
        if (strlen(table[i]->prefix) == n && strncmp(spec, table[i]->prefix, n) == 0)
            return table[i];
    return NULL;
}

/* The format of a folder or file of this name; NULL: none is there. */
static const char *format_of(const char *path) {
    static const char *const forms[][2] = {
        {".tar", "tar"}, {".csv", "csv"}, {".safetensors", "tensors"}, {"-ubyte", "idx"}};
    const size_t n_path = strlen(path);
    struct stat info;
    if (stat(path, &info) != 0)
        return NULL;
    if (S_ISDIR(info.st_mode))
        return "folder";
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const size_t n = strlen(forms[i][0]);
        if (n_path >= n && strcmp(path + n_path - n, forms[i][0]) == 0)
            return forms[i][1];
    }
    return NULL;
}

/* Says what would have been right: the format of what is there, the nearest prefix, or folder: when it looks like a
   path. */
static cvy_status fail_unknown(const char *spec) {
    const char *names[N_FORMATS];
    struct cvy_text known = {0};
    for (size_t i = 0; i < N_FORMATS; i++) {
        names[i] = table[i]->prefix;
        cvy_text_printf(&known, "%s%s", i ? ", " : "", names[i]);
    }
    char *list = NULL, *prefix = strndup(spec, strcspn(spec, ":"));
    cvy_status status;
    CVY_TRY_OUT(cvy_text_take(&known, &list));
    const char *nearest = prefix ? cvy_nearest(prefix, names, N_FORMATS) : NULL;
    const char *there = format_of(spec);
    if (!prefix)
        status = CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for '%s'", spec);
    else if (there)
        status = CVY_FAIL(CVY_ERR_USAGE, "data '%s': no format is named, did you mean '%s:%s'?", spec, there,
                          spec);
    else if (nearest)
        status = CVY_FAIL(CVY_ERR_USAGE, "data '%s': unknown format '%s', did you mean '%s'? (known: %s)",
                          spec, prefix, nearest, list);
    else if (strchr(prefix, '/') || prefix[0] == '.')
        status =
            CVY_FAIL(CVY_ERR_USAGE, "data '%s': no format is named, did you mean 'folder:%s'? (known: %s)",
                     spec, spec, list);
    else
        status = CVY_FAIL(CVY_ERR_USAGE, "data '%s': unknown format '%s' (known: %s)", spec, prefix, list);
out:
    free(list);
    free(prefix);
    return status;
}

static const char *argument_of(const char *spec) {
    const char *colon = strchr(spec, ':');
    return colon ? colon + 1 : "";
}

cvy_status cvy_dataset_open(const char *spec, cvy_split split, const cvy_log_sink *log, cvy_dataset **out) {
    const cvy_log_sink silent = {0};
    const struct cvy_format *format = cvy_format_find(spec);
    if (!format)
        return fail_unknown(spec);
    struct cvy_dataset *dataset = NULL;
    char *copy = strdup(spec);
    if (!copy)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for '%s'", spec);
    cvy_status status = format->open(argument_of(spec), split, log ? log : &silent, &dataset);
    if (status == CVY_OK) {
        dataset->format = format;
        dataset->spec = copy;
        dataset->split = split;
        *out = dataset;
        return CVY_OK;
    }
    if (dataset) {
        cvy_dataset_clear(dataset);
        format->free(dataset);
    }
    free(copy);
    return status;
}

cvy_status cvy_dataset_check_output(const char *spec, const char *dir) {
    const struct cvy_format *format = cvy_format_find(spec);
    return format && format->check_output ? format->check_output(argument_of(spec), dir) : CVY_OK;
}

void cvy_dataset_set_rgb(struct cvy_dataset *dataset) {
    *dataset = (struct cvy_dataset){
        .channels = 3,
        .dtype = CVY_U8,
        .order = CVY_NHWC,
        .preset = "none",
        .mean = {0.485f, 0.456f, 0.406f},
        .std = {0.229f, 0.224f, 0.225f},
    };
}

void cvy_dataset_clear(struct cvy_dataset *dataset) {
    for (int64_t k = 0; dataset->class_names && k < dataset->n_classes; k++)
        free(dataset->class_names[k]);
    free(dataset->class_names);
    free(dataset->spec);
    dataset->class_names = NULL;
    dataset->spec = NULL;
}

void cvy_dataset_free(cvy_dataset *dataset) {
    if (!dataset || dataset->is_abandoned)
        return;
    cvy_dataset_clear(dataset);
    dataset->format->free(dataset);
}

cvy_status cvy_dataset_number_classes(struct cvy_dataset *dataset, int64_t n) {
    CVY_TRY(CVY_ALLOC(dataset->class_names, (size_t)n));
    dataset->n_classes = n;
    for (int64_t k = 0; k < n; k++) {
        struct cvy_text name = {0};
        cvy_text_printf(&name, "%lld", (long long)k);
        CVY_TRY(cvy_text_take(&name, &dataset->class_names[k]));
    }
    return CVY_OK;
}

cvy_status cvy_dataset_name_classes(struct cvy_dataset *dataset, const char *const *names, size_t n) {
    CVY_TRY(CVY_ALLOC(dataset->class_names, n));
    dataset->n_classes = (int64_t)n;
    for (size_t k = 0; k < n; k++) {
        dataset->class_names[k] = strdup(names[k]);
        if (!dataset->class_names[k])
            return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for the names of the classes");
    }
    return CVY_OK;
}

cvy_status cvy_dataset_read(const struct cvy_dataset *dataset, int64_t i, const struct cvy_image_part *part,
                            struct cvy_image *image) {
    const struct cvy_format *format = dataset->format;
    char *bytes;
    size_t n_bytes;
    if (format->pixels) {
        CVY_TRY(format->pixels(dataset, i, image));
        if (part)
            cvy_image_take(image, part);
        return CVY_OK;
    }
    CVY_TRY(format->encoded(dataset, i, &bytes, &n_bytes));
    cvy_status status = cvy_decode(bytes, n_bytes, CVY_MAX_PIXELS, dataset->as_stored, part, image);
    free(bytes);
    return status == CVY_OK ? CVY_OK : cvy_dataset_name_error(dataset, i, status);
}

void cvy_dataset_name(const struct cvy_dataset *dataset, int64_t i, struct cvy_text *out) {
    const struct cvy_format *format = dataset->format;
    if (format->name)
        format->name(dataset, i, out);
    else if (format->path)
        cvy_text_printf(out, "%s", format->path(dataset, i));
    else
        cvy_text_printf(out, "'%s': image %lld", dataset->spec, (long long)i);
}

cvy_status cvy_dataset_name_error(const struct cvy_dataset *dataset, int64_t i, cvy_status status) {
    struct cvy_text name = {0};
    cvy_dataset_name(dataset, i, &name);
    status = name.status == CVY_OK ? cvy_fail_prefix(status, "%s: ", name.data) : name.status;
    cvy_text_free(&name);
    return status;
}

cvy_status cvy_dataset_fail_late(const struct cvy_dataset *dataset, int64_t i, double seconds) {
    return cvy_dataset_name_error(
        dataset, i,
        CVY_FAIL(CVY_ERR_LOST, "was not read within %g seconds: does its disk or network drive still answer?",
                 seconds));
}

void cvy_dataset_abandon(const struct cvy_dataset *dataset) {
    ((struct cvy_dataset *)dataset)->is_abandoned = true; /* all are made by an open, none is constant */
}

cvy_status cvy_dataset_label(const struct cvy_dataset *dataset, int64_t i, int64_t *out) {
    int64_t label;
    CVY_TRY(dataset->format->label(dataset, i, &label));
    if (label < 0 || label >= dataset->n_classes)
        return CVY_FAIL(CVY_ERR_DATA, "'%s': image %lld has the label %lld, outside of 0 to %lld",
                        dataset->spec, (long long)i, (long long)label, (long long)(dataset->n_classes - 1));
    *out = label;
    return CVY_OK;
}

int64_t cvy_dataset_size(const cvy_dataset *dataset) { return dataset->n; }

int64_t cvy_dataset_classes(const cvy_dataset *dataset) { return dataset->n_classes; }

const char *cvy_dataset_class_name(const cvy_dataset *dataset, int64_t k) {
    return k >= 0 && k < dataset->n_classes ? dataset->class_names[k] : NULL;
}

void cvy_dataset_image_size(const cvy_dataset *dataset, int64_t *channels, int64_t *height, int64_t *width) {
    *channels = dataset->channels;
    *height = dataset->height;
    *width = dataset->width;
}

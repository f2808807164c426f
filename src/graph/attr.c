/* Attributes of operators: plain C structs, described by a table. Everything that is said about them as text
   (defaults, "kernel=3x3 stride=2x2", help, comparison) follows from that table alone. */
#include "graph/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An attribute's value passes through doubles, which hold every integer below 2^53: value[0], for a pair both. */
static void store(const struct cvy_attr *attr, const double value[2], void *attrs) {
    void *at = (char *)attrs + attr->offset;
    switch (attr->type) {
    case CVY_ATTR_INT:
        *(int64_t *)at = (int64_t)value[0];
        break;
    case CVY_ATTR_PAIR:
        for (int i = 0; i < 2; i++)
            ((int64_t *)at)[i] = (int64_t)value[i];
        break;
    case CVY_ATTR_FLOAT:
        *(double *)at = value[0];
        break;
    case CVY_ATTR_BOOL:
        *(bool *)at = value[0] != 0;
        break;
    }
}

static void load(const struct cvy_attr *attr, const void *attrs, double value[2]) {
    const void *at = (const char *)attrs + attr->offset;
    switch (attr->type) {
    case CVY_ATTR_INT:
        value[0] = (double)*(const int64_t *)at;
        break;
    case CVY_ATTR_PAIR:
        for (int i = 0; i < 2; i++)
            value[i] = (double)((const int64_t *)at)[i];
        break;
    case CVY_ATTR_FLOAT:
        value[0] = *(const double *)at;
        break;
    case CVY_ATTR_BOOL:
        value[0] = *(const bool *)at;
        break;
    }
}

void cvy_attrs_default(const struct cvy_op *op, void *attrs) {
    memset(attrs, 0, op->attrs_size);
    for (int i = 0; i < op->n_attrs; i++) {
        const struct cvy_attr *attr = &op->attrs[i];
        store(attr, (const double[2]){attr->initial, attr->initial}, attrs);
    }
}

/* An integer that a double holds exactly. */
static bool parse_whole(const char *text, double *out) {
    int64_t n;
    if (!cvy_parse_i64(text, &n) || n > (INT64_C(1) << 53) || n < -(INT64_C(1) << 53))
        return false;
    *out = (double)n;
    return true;
}

/* "3x5"; "3" stands for both. */
static bool parse_pair(const char *text, double out[2]) {
    char first[24];
    size_t length = strcspn(text, "x");
    if (length >= sizeof first)
        return false;
    memcpy(first, text, length);
    first[length] = '\0';
    return parse_whole(first, &out[0]) && parse_whole(text[length] ? text + length + 1 : first, &out[1]);
}

static bool parse_bool(const char *text, double *out) {
    *out = strcmp(text, "true") == 0;
    return *out != 0 || strcmp(text, "false") == 0;
}

static bool parse_value(enum cvy_attr_type type, const char *text, double out[2]) {
    out[1] = 0;
    switch (type) {
    case CVY_ATTR_INT:
        return parse_whole(text, out);
    case CVY_ATTR_PAIR:
        return parse_pair(text, out);
    case CVY_ATTR_FLOAT:
        return cvy_parse_f64(text, out);
    case CVY_ATTR_BOOL:
        return parse_bool(text, out);
    }
    return false;
}

static cvy_status check_range(const struct cvy_op *op, const struct cvy_attr *attr, const double value[2]) {
    if (attr->type == CVY_ATTR_BOOL)
        return CVY_OK;
    for (int i = 0; i < (attr->type == CVY_ATTR_PAIR ? 2 : 1); i++) {
        if (!(value[i] >= attr->min && value[i] <= attr->max)) /* so written, NaN fails */
            return CVY_FAIL(CVY_ERR_USAGE, "%s: %s must lie between %g and %g, not be %g", op->name,
                            attr->name, attr->min, attr->max, value[i]);
    }
    return CVY_OK;
}

cvy_status cvy_attrs_check(const struct cvy_op *op, const void *attrs) {
    for (int i = 0; i < op->n_attrs; i++) {
        const struct cvy_attr *attr = &op->attrs[i];
        double value[2] = {0};
        load(attr, attrs, value);
        CVY_TRY(check_range(op, attr, value));
    }
    return CVY_OK;
}

static cvy_status fail_unknown(const struct cvy_op *op, const char *name) {
    const char *names[64] = {0};
    int n = op->n_attrs < 64 ? op->n_attrs : 64;
    for (int i = 0; i < n; i++)
        names[i] = op->attrs[i].name;
    const char *nearest = cvy_nearest(name, names, (size_t)n);
    if (nearest)
        return CVY_FAIL(CVY_ERR_USAGE, "%s has no attribute \"%s\"; did you mean \"%s\"?", op->name, name,
                        nearest);
    struct cvy_text all = {0};
    for (int i = 0; i < n; i++)
        cvy_text_printf(&all, "%s%s", i ? ", " : "", names[i]);
    cvy_status status = CVY_FAIL(CVY_ERR_USAGE, "%s has no attribute \"%s\"; it has: %s", op->name, name,
                                 n && all.data ? all.data : "none");
    cvy_text_free(&all);
    return status;
}

/* One "name=value", NUL-terminated. */
static cvy_status parse_one(const struct cvy_op *op, char *item, void *attrs) {
    static const char *const forms[] = {[CVY_ATTR_INT] = "a whole number",
                                        [CVY_ATTR_PAIR] = "a pair such as 3x3",
                                        [CVY_ATTR_FLOAT] = "a number",
                                        [CVY_ATTR_BOOL] = "true or false"};
    char *value_text = strchr(item, '=');
    if (!value_text)
        return CVY_FAIL(CVY_ERR_USAGE, "%s: attributes are written name=value, not \"%s\"", op->name, item);
    *value_text++ = '\0';
    const struct cvy_attr *attr = NULL;
    for (int i = 0; i < op->n_attrs && !attr; i++)
        attr = strcmp(op->attrs[i].name, item) == 0 ? &op->attrs[i] : NULL;
    if (!attr)
        return fail_unknown(op, item);

    double value[2];
    if (!parse_value(attr->type, value_text, value))
        return CVY_FAIL(CVY_ERR_USAGE, "%s: %s must be %s, not \"%s\"", op->name, item, forms[attr->type],
                        value_text);
    CVY_TRY(check_range(op, attr, value));
    store(attr, value, attrs);
    return CVY_OK;
}

cvy_status cvy_attrs_parse(const struct cvy_op *op, const char *text, void *attrs) {
    char *copy = strdup(text);
    if (!copy)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory for attributes of %s", op->name);
    cvy_status status = CVY_OK;
    char *rest;
    for (char *item = strtok_r(copy, " \t", &rest); item; item = strtok_r(NULL, " \t", &rest))
        CVY_TRY_OUT(parse_one(op, item, attrs));
out:
    free(copy);
    return status;
}

void cvy_f64_print(struct cvy_text *out, double value) {
    char digits[40];
    for (int precision = 6; precision <= 17; precision++) { /* 17 digits always tell doubles apart */
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    cvy_text_printf(out, "%s", digits);
}

/* A pair counts both; of any other value the second is 0. */
static bool is_same(const double a[2], const double b[2]) { return a[0] == b[0] && a[1] == b[1]; }

bool cvy_attrs_equal(const struct cvy_op *op, const void *a, const void *b) {
    for (int i = 0; i < op->n_attrs; i++) {
        double x[2] = {0}, y[2] = {0};
        load(&op->attrs[i], a, x);
        load(&op->attrs[i], b, y);
        if (!is_same(x, y))
            return false;
    }
    return true;
}

void cvy_attrs_print(const struct cvy_op *op, const void *attrs, struct cvy_text *out) {
    const char *space = "";
    for (int i = 0; i < op->n_attrs; i++) {
        const struct cvy_attr *attr = &op->attrs[i];
        bool is_pair = attr->type == CVY_ATTR_PAIR;
        double value[2] = {0};
        load(attr, attrs, value);
        if (is_same(value, (const double[2]){attr->initial, is_pair ? attr->initial : 0}))
            continue;
        cvy_text_printf(out, "%s%s=", space, attr->name);
        if (attr->type == CVY_ATTR_FLOAT)
            cvy_f64_print(out, value[0]);
        else if (attr->type == CVY_ATTR_BOOL)
            cvy_text_printf(out, "%s", value[0] != 0 ? "true" : "false");
        else
            cvy_text_printf(out, "%.0f", value[0]);
        if (is_pair)
            cvy_text_printf(out, "x%.0f", value[1]);
        space = " ";
    }
}

/* Attributes of operators: plain C structs, described by a table. Everything that is said about them as text
   (defaults, "kernel=3x3 stride=2x2", help, comparison) follows from that table alone. */
#include "graph/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *field(const struct cvy_attr *attr, void *attrs) { return (char *)attrs + attr->offset; }
static const void *field_const(const struct cvy_attr *attr, const void *attrs) {
    return (const char *)attrs + attr->offset;
}

/* Stores value[0] (a pair: both) in the attribute's own type. */
static void store(const struct cvy_attr *attr, const double value[2], void *attrs) {
    void *at = field(attr, attrs);
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

static cvy_status fail_unknown(const struct cvy_op *op, const char *name) {
    const char *names[64];
    int n = op->n_attrs < 64 ? op->n_attrs : 64;
    for (int i = 0; i < n; i++)
        names[i] = op->attrs[i].name;
    const char *nearest = cvy_nearest(name, names, (size_t)n);
    if (nearest)
        return CVY_FAIL(CVY_ERR_USAGE, "%s has no attribute \"%s\"; did you mean \"%s\"?", op->name, name, nearest);
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
    static const char *const forms[] = {[CVY_ATTR_INT] = "a whole number", [CVY_ATTR_PAIR] = "a pair such as 3x3",
                                        [CVY_ATTR_FLOAT] = "a number", [CVY_ATTR_BOOL] = "true or false"};
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
        return CVY_FAIL(CVY_ERR_USAGE, "%s: %s must be %s, not \"%s\"", op->name, item, forms[attr->type], value_text);
    int n = attr->type == CVY_ATTR_PAIR ? 2 : 1;
    for (int i = 0; i < n && attr->type != CVY_ATTR_BOOL; i++) {
        if (!(value[i] >= attr->min && value[i] <= attr->max)) /* so written, NaN fails */
            return CVY_FAIL(CVY_ERR_USAGE, "%s: %s must lie between %g and %g, not be %s", op->name, item, attr->min,
                            attr->max, value_text);
    }
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

static bool attr_equal(const struct cvy_attr *attr, const void *a, const void *b) {
    static const size_t n_bytes[] = {[CVY_ATTR_INT] = sizeof(int64_t), [CVY_ATTR_PAIR] = 2 * sizeof(int64_t),
                                     [CVY_ATTR_FLOAT] = sizeof(double), [CVY_ATTR_BOOL] = sizeof(bool)};
    return memcmp(field_const(attr, a), field_const(attr, b), n_bytes[attr->type]) == 0;
}

bool cvy_attrs_equal(const struct cvy_op *op, const void *a, const void *b) {
    for (int i = 0; i < op->n_attrs; i++) {
        if (!attr_equal(&op->attrs[i], a, b))
            return false;
    }
    return true;
}

static void print_one(const struct cvy_attr *attr, const void *attrs, struct cvy_text *out) {
    const void *at = field_const(attr, attrs);
    cvy_text_printf(out, "%s=", attr->name);
    switch (attr->type) {
    case CVY_ATTR_INT:
        cvy_text_printf(out, "%lld", (long long)*(const int64_t *)at);
        break;
    case CVY_ATTR_PAIR:
        cvy_text_printf(out, "%lldx%lld", (long long)((const int64_t *)at)[0], (long long)((const int64_t *)at)[1]);
        break;
    case CVY_ATTR_FLOAT:
        cvy_f64_print(out, *(const double *)at);
        break;
    case CVY_ATTR_BOOL:
        cvy_text_printf(out, "%s", *(const bool *)at ? "true" : "false");
        break;
    }
}

/* A default is stored through the same conversion as any value, so the comparison is exact. */
static bool is_default(const struct cvy_attr *attr, const void *attrs) {
    union {
        int64_t whole[2];
        double number;
        bool flag;
    } initial;
    memset(&initial, 0, sizeof initial);
    struct cvy_attr at_zero = *attr;
    at_zero.offset = 0;
    store(&at_zero, (const double[2]){attr->initial, attr->initial}, &initial);
    return attr_equal(&at_zero, &initial, field_const(attr, attrs));
}

void cvy_attrs_print(const struct cvy_op *op, const void *attrs, struct cvy_text *out) {
    const char *space = "";
    for (int i = 0; i < op->n_attrs; i++) {
        if (is_default(&op->attrs[i], attrs))
            continue;
        cvy_text_printf(out, "%s", space);
        print_one(&op->attrs[i], attrs, out);
        space = " ";
    }
}

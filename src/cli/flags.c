/* See flags.h: finding flags by name, parsing their values. */
#include "cli/flags.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls the body with `flag` for every flag of every group. */
#define FOR_EACH_FLAG(groups, flag)                                            \
    for (const struct flag_group *const *group_ = (groups); *group_; group_++) \
        for (const struct flag *flag = (*group_)->flags; flag < (*group_)->flags + (*group_)->n; flag++)

static void *field(const struct flag_values *values, const struct flag *flag) {
    return (char *)values->options + flag->offset;
}

static bool is_named(const struct flag *flag, const char *name, size_t n) {
    const char *names[] = {flag->name, flag->alias};
    for (int i = 0; i < 2; i++)
        if (names[i] && strlen(names[i]) == n && !memcmp(names[i], name, n))
            return true;
    return false;
}

static const struct flag *find_long(const struct flag_values *values, const char *name, size_t n) {
    FOR_EACH_FLAG(values->groups, flag) {
        if (is_named(flag, name, n))
            return flag;
    }
    return NULL;
}

static const struct flag *find_letter(const struct flag_values *values, char letter) {
    FOR_EACH_FLAG(values->groups, flag) {
        if (flag->letter == letter)
            return flag;
    }
    return NULL;
}

/* `given` is as it stands on the command line: dashes and "=VALUE" are no part of the name. */
static cvy_status unknown_flag(const struct flag_values *values, const char *given) {
    const char *names[256];
    char name[64];
    int length = (int)strcspn(given, "=");
    const char *bare = given + strspn(given, "-");
    snprintf(name, sizeof name, "%.*s", (int)(given + length - bare), bare);
    size_t n = 0;
    FOR_EACH_FLAG(values->groups, flag) {
        if (n < 255)
            names[n++] = flag->name;
        if (flag->alias && n < 255)
            names[n++] = flag->alias;
    }
    const char *near = cvy_nearest(name, names, n);
    if (near)
        return CVY_FAIL(CVY_ERR_USAGE, "unknown flag %.*s; did you mean --%s?", length, given, near);
    return CVY_FAIL(CVY_ERR_USAGE, "unknown flag %.*s; --help lists the flags", length, given);
}

/* ---- values ---------------------------------------------------------------------------------------- */

static cvy_status check_range(const struct flag *flag, const char *text, double value) {
    if (flag->min == 0 && flag->max == 0)
        return CVY_OK;
    if (value >= flag->min && value <= flag->max)
        return CVY_OK;
    if (flag->max == INFINITY)
        return CVY_FAIL(CVY_ERR_USAGE, "--%s %s: must be at least %.10g", flag->name, text, flag->min);
    return CVY_FAIL(CVY_ERR_USAGE, "--%s %s: must be from %.10g to %.10g", flag->name, text, flag->min,
                    flag->max);
}

static cvy_status check_choice(const struct flag *flag, const char *text) {
    if (!flag->choices)
        return CVY_OK;
    struct flag_names names = {.n = 0};
    flag->choices(&names);
    for (size_t i = 0; i < names.n; i++)
        if (!strcmp(text, names.name[i]))
            return CVY_OK;
    struct cvy_text list = {0};
    for (size_t i = 0; i < names.n; i++)
        cvy_text_printf(&list, "%s%s", i ? ", " : "", names.name[i]);
    const char *near = cvy_nearest(text, names.name, names.n);
    cvy_status status = CVY_FAIL(CVY_ERR_USAGE, "--%s %s: there is no such %s; %s%s%s (there are: %s)",
                                 flag->name, text, flag->name, near ? "did you mean " : "choose another",
                                 near ? near : "", near ? "?" : "", list.data ? list.data : "none");
    cvy_text_free(&list);
    return status;
}

/* run.json and the weights' metadata keep texts, and hold UTF-8 alone. */
static cvy_status check_text(const struct flag *flag, const char *text) {
    if (!*text)
        return CVY_FAIL(CVY_ERR_USAGE, "--%s: is empty", flag->name);
    if (!cvy_is_utf8(text))
        return CVY_FAIL(CVY_ERR_USAGE, "--%s: is not UTF-8", flag->name);
    return check_choice(flag, text);
}

/* "3x32x32": n numbers of at least 1 between 'x'. A single number stands for a square when n is 2. */
static bool parse_sizes(const char *text, int n, int64_t *out) {
    int64_t sizes[3];
    char piece[64];
    int count = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, "x");
        if (count == n || length == 0 || length >= sizeof piece)
            return false;
        memcpy(piece, at, length);
        piece[length] = 0;
        if (!cvy_parse_i64(piece, &sizes[count]) || sizes[count] < 1 || sizes[count] > 1 << 20)
            return false;
        count++;
        at += length;
        if (!*at)
            break;
    }
    if (count == 1 && n == 2)
        sizes[count++] = sizes[0];
    if (count != n)
        return false;
    memcpy(out, sizes, (size_t)n * sizeof *out);
    return true;
}

static bool parse_channels(const char *text, struct flag_channels *out) {
    struct flag_channels list = {.n = 0};
    char piece[64];
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        double value;
        if (list.n == 4 || length >= sizeof piece)
            return false;
        memcpy(piece, at, length);
        piece[length] = 0;
        if (!cvy_parse_f64(piece, &value) || !isfinite(value))
            return false;
        list.value[list.n++] = (float)value;
        at += length;
        if (!*at)
            break;
    }
    *out = list;
    return true;
}

static cvy_status set_number(const struct flag *flag, const char *text, void *to) {
    int64_t whole;
    double real;
    if (flag->word && !strcmp(text, flag->word)) {
        *(int64_t *)to = 0;
    } else if (flag->type == FLAG_INT) {
        if (!cvy_parse_i64(text, &whole))
            return CVY_FAIL(CVY_ERR_USAGE, "--%s %s: must be a whole number%s%s%s", flag->name, text,
                            text[strspn(text, "0123456789")] ? "" : " below 2^63", flag->word ? ", or " : "",
                            flag->word ? flag->word : "");
        CVY_TRY(check_range(flag, text, (double)whole));
        *(int64_t *)to = whole;
    } else {
        if (!cvy_parse_f64(text, &real) || !isfinite(real))
            return CVY_FAIL(CVY_ERR_USAGE, "--%s %s: must be a finite number", flag->name, text);
        CVY_TRY(check_range(flag, text, real));
        *(double *)to = real;
    }
    return CVY_OK;
}

static cvy_status set_field(const struct flag *flag, const char *text, void *to) {
    switch (flag->type) {
    case FLAG_TEXT:
        CVY_TRY(check_text(flag, text));
        *(const char **)to = text;
        return CVY_OK;
    case FLAG_INT:
    case FLAG_FLOAT:
        return set_number(flag, text, to);
    case FLAG_BYTES:
        if (!cvy_parse_bytes(text, to))
            return CVY_FAIL(CVY_ERR_USAGE, "--%s %s: must be bytes, like 500M, 1.5G or 2Gi", flag->name,
                            text);
        return CVY_OK;
    case FLAG_SWITCH:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return CVY_FAIL(CVY_ERR_USAGE, "--%s %s: must be true or false", flag->name, text);
        *(int *)to = text[0] == 't';
        return CVY_OK;
    case FLAG_SIZE:
        if (!parse_sizes(text, 2, to))
            return CVY_FAIL(CVY_ERR_USAGE, "--%s %s: must be like 224 or 224x200", flag->name, text);
        return CVY_OK;
    case FLAG_SHAPE:
        if (!parse_sizes(text, 3, to))
            return CVY_FAIL(CVY_ERR_USAGE, "--%s %s: must be CxHxW, like 3x32x32", flag->name, text);
        return CVY_OK;
    case FLAG_CHANNELS:
        if (!parse_channels(text, to))
            return CVY_FAIL(CVY_ERR_USAGE, "--%s %s: must be one to four numbers, like 0.5,0.5,0.5",
                            flag->name, text);
        return CVY_OK;
    }
    return CVY_FAIL(CVY_ERR_FAILED, "--%s: flag of an unknown type", flag->name);
}

static cvy_status set_given(struct flag_values *values, const struct flag *flag, const char *text) {
    CVY_TRY(set_field(flag, text, field(values, flag)));
    return cvy_vec_push(&values->given, flag);
}

const struct flag *flags_find(const struct flag_values *values, const char *name) {
    return find_long(values, name, strlen(name));
}

cvy_status flags_set(struct flag_values *values, const char *name, const char *text) {
    const struct flag *flag = flags_find(values, name);
    return flag ? set_given(values, flag, text) : unknown_flag(values, name);
}

bool flags_given(const struct flag_values *values, const char *name) {
    for (size_t i = 0; i < values->given.n; i++)
        if (is_named(values->given.data[i], name, strlen(name)))
            return true;
    return false;
}

static cvy_status set_defaults(struct flag_values *values) {
    FOR_EACH_FLAG(values->groups, flag) {
        void *to = field(values, flag);
        if (flag->initial)
            CVY_TRY(set_field(flag, flag->initial, to));
        else if (flag->type == FLAG_FLOAT)
            *(double *)to = NAN;
        else if (flag->type == FLAG_SWITCH)
            *(int *)to = -1;
    }
    return CVY_OK;
}

/* ---- the command line -------------------------------------------------------------------------------- */

/* The flag that an argument names, with the value that it brings along: "--name=value", "-n8", "--no-name". */
static const struct flag *find_flag(const struct flag_values *values, const char *argument,
                                    const char **text) {
    *text = NULL;
    if (argument[1] != '-') {
        if (argument[2])
            *text = argument + 2;
        return find_letter(values, argument[1]);
    }
    const char *name = argument + 2;
    size_t n = strcspn(name, "=");
    if (name[n])
        *text = name + n + 1;
    const struct flag *flag = find_long(values, name, n);
    if (flag || *text || strncmp(name, "no-", 3) != 0)
        return flag;
    *text = "false";
    flag = find_long(values, name + 3, n - 3);
    return flag && flag->type == FLAG_SWITCH ? flag : NULL;
}

/* One argument that begins with a dash; may take the next one as its value: *i is moved. */
static cvy_status parse_flag(struct flag_values *values, int argc, char **argv, int *i) {
    const char *argument = argv[*i], *text;
    const struct flag *flag = find_flag(values, argument, &text);
    if (!flag)
        return unknown_flag(values, argument);
    if (flag->type == FLAG_SWITCH && !text)
        text = "true";
    if (!text && *i + 1 >= argc)
        return CVY_FAIL(CVY_ERR_USAGE, "%s: needs a value", argument);
    if (!text)
        text = argv[++*i];
    return set_given(values, flag, text);
}

/* Before everything else on the command line, wherever --config stands in it. */
static cvy_status read_config(struct flag_values *values, int argc, char **argv) {
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (!strncmp(argv[i], "--config=", 9))
            return flags_read_config(values, argv[i] + 9);
        if (!strcmp(argv[i], "--config") && i + 1 < argc)
            return flags_read_config(values, argv[i + 1]);
    }
    return CVY_OK;
}

cvy_status flags_parse(struct flag_values *values, int argc, char **argv) {
    CVY_TRY(set_defaults(values));
    CVY_TRY(read_config(values, argc, argv));
    bool only_rest = false;
    for (int i = 0; i < argc; i++) {
        if (!only_rest && !strcmp(argv[i], "--"))
            only_rest = true;
        else if (!only_rest && argv[i][0] == '-' && argv[i][1])
            CVY_TRY(parse_flag(values, argc, argv, &i));
        else
            CVY_TRY(cvy_vec_push(&values->rest, argv[i]));
    }
    return CVY_OK;
}

void flags_free(struct flag_values *values) {
    cvy_vec_free(&values->given);
    cvy_vec_free(&values->rest);
    cvy_pool_free(&values->pool);
}

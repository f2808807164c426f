/* Flags to and from JSON: --config FILE reads what run.json wrote. */
#include "cli/flags.h"

#include "data/scan.h"

#include <math.h>
#include <string.h>

/* Fewest digits that give the same double again; returns how many. */
static int print_real(double value, struct cvy_text *out) {
    char text[40];
    int digits;
    for (digits = 6; digits < 17; digits++) {
        double again;
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (cvy_parse_f64(text, &again) && again == value)
            break;
    }
    cvy_text_printf(out, "%.*g", digits, value);
    return digits;
}

static bool print_sizes(const int64_t *size, int n, struct cvy_text *out) {
    for (int i = 0; i < n; i++)
        cvy_text_printf(out, "%s%lld", i ? "x" : "", (long long)size[i]);
    return size[0] != 0;
}

static bool print_channels(const struct flag_channels *list, struct cvy_text *out) {
    for (int i = 0; i < list->n; i++)
        cvy_text_printf(out, "%s%.9g", i ? "," : "", (double)list->value[i]);
    return list->n != 0;
}

bool flags_print(const struct flag_values *values, const struct flag *flag, struct cvy_text *out) {
    const void *from = (const char *)values->options + flag->offset;
    switch (flag->type) {
    case FLAG_TEXT: {
        const char *text = *(const char *const *)from;
        cvy_text_printf(out, "%s", text ? text : "");
        return text != NULL;
    }
    case FLAG_INT:
        cvy_text_printf(out, "%lld", (long long)*(const int64_t *)from);
        return true;
    case FLAG_BYTES:
        cvy_text_printf(out, "%lld", (long long)*(const int64_t *)from);
        return *(const int64_t *)from != 0;
    case FLAG_FLOAT:
        print_real(*(const double *)from, out);
        return !isnan(*(const double *)from);
    case FLAG_SWITCH:
        cvy_text_printf(out, "%s", *(const int *)from ? "true" : "false");
        return *(const int *)from >= 0;
    case FLAG_SIZE:
        return print_sizes(from, 2, out);
    case FLAG_SHAPE:
        return print_sizes(from, 3, out);
    case FLAG_CHANNELS:
        return print_channels(from, out);
    }
    return false;
}

void flags_print_common(const struct flag_values *values, struct cvy_text *out) {
    for (const struct flag_group *const *group = values->groups; *group; group++) {
        for (size_t i = 0; i < (*group)->n; i++) {
            const struct flag *flag = &(*group)->flags[i];
            struct cvy_text text = {0};
            bool is_given = flags_print(values, flag, &text);
            if (!flag->is_own)
                cvy_text_printf(out, "--%s %s\n", flag->name,
                                !is_given        ? "not given"
                                : flag->is_place ? "given"
                                                 : text.data);
            cvy_text_free(&text);
        }
    }
}

/* Numbers and switches as JSON's own, everything else as text: also the rare number that would lose digits in a
   file written with FLAGS_JSON. */
static json_t *value_to_json(const struct flag_values *values, const struct flag *flag, const char *text) {
    const void *from = (const char *)values->options + flag->offset;
    switch (flag->type) {
    case FLAG_INT:
        return json_integer(*(const int64_t *)from);
    case FLAG_FLOAT: {
        struct cvy_text scratch = {0};
        bool fits = print_real(*(const double *)from, &scratch) <= FLAGS_DIGITS;
        cvy_text_free(&scratch);
        return fits ? json_real(*(const double *)from) : json_string(text);
    }
    case FLAG_SWITCH:
        return json_boolean(*(const int *)from);
    default:
        return json_string(text);
    }
}

json_t *flags_to_json(const struct flag_values *values) {
    json_t *object = json_object();
    bool failed = !object;
    for (const struct flag_group *const *group = values->groups; *group && !failed; group++) {
        for (size_t i = 0; i < (*group)->n && !failed; i++) {
            const struct flag *flag = &(*group)->flags[i];
            struct cvy_text text = {0};
            if (!flag->is_not_kept && flags_print(values, flag, &text))
                failed = json_object_set_new(object, flag->name, value_to_json(values, flag, text.data)) != 0;
            cvy_text_free(&text);
        }
    }
    if (failed) {
        json_decref(object);
        return NULL;
    }
    return object;
}

bool flags_print_json(const json_t *json, struct cvy_text *out) {
    if (json_is_string(json))
        cvy_text_printf(out, "%s", json_string_value(json));
    else if (json_is_integer(json))
        cvy_text_printf(out, "%lld", (long long)json_integer_value(json));
    else if (json_is_real(json))
        print_real(json_real_value(json), out);
    else if (json_is_boolean(json))
        cvy_text_printf(out, "%s", json_is_true(json) ? "true" : "false");
    else
        return false;
    return true;
}

static cvy_status set_from_json(struct flag_values *values, const char *name, const json_t *json) {
    struct cvy_text text = {0};
    if (!flags_find(values, name) && values->is_elsewhere && values->is_elsewhere(name))
        return CVY_OK;
    if (flags_given(values, name))
        return CVY_OK;
    if (!flags_print_json(json, &text))
        return CVY_FAIL(CVY_ERR_USAGE, "\"%s\" must be a text, a number, true or false", name);
    char *kept;
    cvy_status status = cvy_pool_strdup(&values->pool, text.data ? text.data : "", &kept);
    cvy_text_free(&text);
    CVY_TRY(status);
    return flags_set(values, name, kept);
}

json_t *flags_load_json(const char *path, json_error_t *error) {
    if (!cvy_is_folder(path))
        return json_load_file(path, JSON_REJECT_DUPLICATES, error);
    *error = (json_error_t){.line = -1};
    snprintf(error->text, sizeof error->text, "is a folder: name the file");
    return NULL;
}

cvy_status flags_read_config(struct flag_values *values, const char *path) {
    json_error_t error;
    json_t *root = flags_load_json(path, &error);
    if (!root)
        return error.line < 0
                   ? CVY_FAIL(CVY_ERR_USAGE, "--config %s: %s", path, error.text)
                   : CVY_FAIL(CVY_ERR_USAGE, "--config %s: line %d: %s", path, error.line, error.text);
    if (!json_is_object(root)) {
        json_decref(root);
        return CVY_FAIL(CVY_ERR_USAGE, "--config %s: must hold an object of flags", path);
    }
    json_t *flags = json_object_get(root, "flags"), *value;
    flags = json_is_object(flags) ? flags : root;
    const char *name;
    cvy_status status = CVY_OK;
    size_t n_given = values->given.n;
    json_object_foreach(flags, name, value) {
        status = set_from_json(values, name, value);
        values->given.n = n_given;
        if (status != CVY_OK) {
            cvy_fail_prefix(status, "%s: ", path);
            break;
        }
    }
    json_decref(root);
    return status;
}

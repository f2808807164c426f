/* Device lists: see devices.h. */
#include "engine/devices.h"

#include "base/vec.h"

#include <stdio.h>
#include <string.h>

enum { MAX_DEVICES = 256 };

struct range {
    char kind[32];
    int64_t first, last; /* the index; with has_parts the part of `index` */
    int64_t index;
    bool has_parts;
};

/* "3" or "0-3" */
static bool parse_numbers(char *text, int64_t *first, int64_t *last) {
    char *dash = strchr(text, '-');
    if (dash)
        *dash = 0;
    bool is_number = cvy_parse_i64(text, first);
    *last = *first;
    if (dash) {
        is_number = is_number && cvy_parse_i64(dash + 1, last);
        *dash = '-';
    }
    return is_number && *first >= 0 && *last >= *first && *last < 100000;
}

/* "cpu:0-3", "cpu:2", "cuda:0/0-3"; or "4-5" that goes on with the kind before it. */
static cvy_status parse_range(char *text, struct range *r) {
    char *colon = strchr(text, ':'), *numbers = colon ? colon + 1 : text, *slash = strchr(numbers, '/');
    int64_t last = 0;
    if (colon) /* longer than any name: then nothing has it */
        snprintf(r->kind, sizeof r->kind, "%.*s", (int)(colon - text), text);
    if (slash)
        *slash = 0;
    r->has_parts = slash;
    bool is_right = !slash || (parse_numbers(numbers, &r->index, &last) && last == r->index);
    is_right = is_right && parse_numbers(slash ? slash + 1 : numbers, &r->first, &r->last);
    if (slash)
        *slash = '/';
    if (!is_right || !r->kind[0])
        return CVY_FAIL(CVY_ERR_USAGE, "devices: cannot read '%s'; write cpu:0, cpu:0-3 or cpu:0,cpu:2",
                        text);
    return CVY_OK;
}

static cvy_status find_backend(const char *name, const struct cvy_backend **out) {
    const char *names[32];
    size_t n = cvy_backend_names(names, 32);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0)
            return cvy_backend_load(name, out);
    }
    char suggestion[CVY_SUGGESTION];
    return CVY_FAIL(CVY_ERR_USAGE, "no backend '%s' here%s; `convoy devices` lists what there is", name,
                    cvy_suggest(suggestion, name, names, n));
}

/* All of it that is here. */
static cvy_status add_range(struct cvy_device_list *list, const struct range *r) {
    const int count = list->backend->count();
    for (int64_t i = r->first; i <= r->last; i++) {
        int index = (int)(r->has_parts ? r->index : i), part = (int)(r->has_parts ? i : 0);
        if (index >= count) {
            list->n_absent++;
            continue;
        }
        for (int k = 0; k < list->n; k++) {
            if (list->index[k] == index && list->part[k] == part)
                return CVY_FAIL(CVY_ERR_USAGE, "devices: %s:%d%s is named twice", r->kind, index,
                                part ? " (this part of it)" : "");
        }
        if (list->n == MAX_DEVICES)
            return CVY_FAIL(CVY_ERR_USAGE, "devices: more than %d in one process", MAX_DEVICES);
        list->part[list->n] = part;
        list->index[list->n++] = index;
    }
    return CVY_OK;
}

static cvy_status check_range(const struct cvy_backend *backend, bool is_elastic, const struct range *r) {
    int64_t last = r->has_parts ? r->index : r->last;
    int count = backend->count();
    if (r->has_parts && !backend->has_parts)
        return CVY_FAIL(CVY_ERR_USAGE, "devices: %s:%lld/%lld: %s devices are not shared; write %s:0,%s:1",
                        r->kind, (long long)r->index, (long long)r->first, r->kind, r->kind, r->kind);
    if (last >= count && !is_elastic)
        return CVY_FAIL(CVY_ERR_USAGE, "devices: there is no %s:%lld; `convoy devices` lists what there is",
                        r->kind, (long long)last);
    return CVY_OK;
}

static cvy_status parse_list(char *text, const char *backend, bool is_elastic, struct cvy_device_list *list) {
    struct range r = {.kind = ""};
    char *rest = NULL;
    for (char *part = strtok_r(text, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
        CVY_TRY(parse_range(part, &r));
        const struct cvy_backend *own;
        CVY_TRY(find_backend(backend ? backend : r.kind, &own));
        if (list->backend && list->backend != own)
            return CVY_FAIL(CVY_ERR_USAGE, "devices: %s and %s cannot take part in one run",
                            list->backend->name, own->name);
        list->backend = own;
        CVY_TRY(check_range(own, is_elastic, &r));
        CVY_TRY(add_range(list, &r));
    }
    if (!list->n && list->n_absent)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "devices: none of the %d is here; `convoy devices` lists what there is",
                        list->n_absent);
    if (!list->n)
        return CVY_FAIL(CVY_ERR_USAGE, "devices: the list is empty; write cpu:0 or cpu:0-3");
    return CVY_OK;
}

/* Runs of indices: "cpu:0-1,4"; runs of parts: "cuda:0/0-1,1/0-1". */
static cvy_status print_list(struct cvy_device_list *list, const char *kind, struct cvy_pool *pool) {
    struct cvy_text text = {0};
    bool has_parts = false;
    for (int i = 0; i < list->n; i++)
        has_parts |= list->part[i] != 0;
    cvy_text_printf(&text, "%s:", kind);
    for (int i = 0; i < list->n;) {
        const int *number = has_parts ? list->part : list->index;
        int k = i;
        while (k + 1 < list->n && number[k + 1] == number[k] + 1 &&
               (!has_parts || list->index[k + 1] == list->index[i]))
            k++;
        cvy_text_printf(&text, "%s", i ? "," : "");
        if (has_parts)
            cvy_text_printf(&text, "%d/", list->index[i]);
        cvy_text_printf(&text, k > i ? "%d-%d" : "%d", number[i], number[k]);
        i = k + 1;
    }
    char *copy = NULL;
    cvy_status status = text.status ? text.status : cvy_pool_strdup(pool, text.data, &copy);
    cvy_text_free(&text);
    list->text = copy;
    return status;
}

cvy_status cvy_devices_parse(const char *text, const char *backend, bool is_elastic, struct cvy_pool *pool,
                             struct cvy_device_list *out) {
    char *copy = NULL;
    void *index = NULL, *part = NULL;
    *out = (struct cvy_device_list){0};
    if (!text || strcmp(text, "auto") == 0)
        text = "cpu:0";
    CVY_TRY(cvy_pool_strdup(pool, text, &copy));
    CVY_TRY(cvy_pool_alloc(pool, MAX_DEVICES * sizeof *out->index, &index));
    CVY_TRY(cvy_pool_alloc(pool, MAX_DEVICES * sizeof *out->part, &part));
    out->index = index;
    out->part = part;
    CVY_TRY(parse_list(copy, backend, is_elastic, out));
    return print_list(out, out->backend->name, pool);
}

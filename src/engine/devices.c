/* Device lists: see devices.h. */
#include "engine/devices.h"

#include "base/vec.h"

#include <stdio.h>
#include <string.h>

enum { MAX_DEVICES = 256 };

struct range {
    char kind[32];
    int64_t first, last;
};

/* "cpu:0-3", "cpu:2"; or "4-5" that goes on with the kind before it. */
static cvy_status parse_range(char *part, struct range *r) {
    char *colon = strchr(part, ':'), *numbers = colon ? colon + 1 : part;
    if (colon) {
        *colon = 0;
        snprintf(r->kind, sizeof r->kind, "%s", part);
    }
    char *dash = strchr(numbers, '-');
    if (dash)
        *dash = 0;
    bool is_number = cvy_parse_i64(numbers, &r->first);
    r->last = r->first;
    if (dash)
        is_number = is_number && cvy_parse_i64(dash + 1, &r->last);
    if (!is_number || !r->kind[0] || r->first < 0 || r->last < r->first || r->last >= 100000)
        return CVY_FAIL(
            CVY_ERR_USAGE, "devices: cannot read '%s%s%s%s%s'; write cpu:0, cpu:0-3 or cpu:0,cpu:2",
            colon ? r->kind : "", colon ? ":" : "", numbers, dash ? "-" : "", dash ? dash + 1 : "");
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

static cvy_status add_range(struct cvy_device_list *list, const struct range *r) {
    for (int64_t i = r->first; i <= r->last; i++) {
        for (int k = 0; k < list->n; k++) {
            if (list->index[k] == i)
                return CVY_FAIL(CVY_ERR_USAGE, "devices: %s:%lld is named twice", r->kind, (long long)i);
        }
        if (list->n == MAX_DEVICES)
            return CVY_FAIL(CVY_ERR_USAGE, "devices: more than %d in one process", MAX_DEVICES);
        list->index[list->n++] = (int)i;
    }
    return CVY_OK;
}

static cvy_status parse_list(char *text, const char *backend, struct cvy_device_list *list) {
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
        if (r.last >= own->count())
            return CVY_FAIL(CVY_ERR_USAGE,
                            "devices: there is no %s:%lld; `convoy devices` lists what there is", r.kind,
                            (long long)r.last);
        CVY_TRY(add_range(list, &r));
    }
    if (!list->n)
        return CVY_FAIL(CVY_ERR_USAGE, "devices: the list is empty; write cpu:0 or cpu:0-3");
    return CVY_OK;
}

/* Runs of indices: "cpu:0-1,4". */
static cvy_status print_list(struct cvy_device_list *list, const char *kind, struct cvy_pool *pool) {
    struct cvy_text text = {0};
    cvy_text_printf(&text, "%s:", kind);
    for (int i = 0; i < list->n;) {
        int k = i;
        while (k + 1 < list->n && list->index[k + 1] == list->index[k] + 1)
            k++;
        cvy_text_printf(&text, k > i ? "%s%d-%d" : "%s%d", i ? "," : "", list->index[i], list->index[k]);
        i = k + 1;
    }
    char *copy = NULL;
    cvy_status status = text.status ? text.status : cvy_pool_strdup(pool, text.data, &copy);
    cvy_text_free(&text);
    list->text = copy;
    return status;
}

cvy_status cvy_devices_parse(const char *text, const char *backend, struct cvy_pool *pool,
                             struct cvy_device_list *out) {
    char *copy = NULL;
    void *index = NULL;
    *out = (struct cvy_device_list){0};
    if (!text || strcmp(text, "auto") == 0)
        text = "cpu:0";
    CVY_TRY(cvy_pool_strdup(pool, text, &copy));
    CVY_TRY(cvy_pool_alloc(pool, MAX_DEVICES * sizeof *out->index, &index));
    out->index = index;
    CVY_TRY(parse_list(copy, backend, out));
    return print_list(out, out->backend->name, pool);
}

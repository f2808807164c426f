/* convoy devices: what this machine can train on. */
#include "cli/command.h"
#include "cli/device_about.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ways { /* how to print */
    const cvy_log_sink *log;
    json_t *list; /* NULL: as text */
    bool is_verbose;
};

/* Every line of `more` as an object's member. */
static json_t *more_json(char *more) {
    char *rest = NULL;
    json_t *object = json_object();
    for (char *line = strtok_r(more, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *colon = strstr(line, ": ");
        if (colon) {
            *colon = '\0';
            json_object_set_new(object, line, json_string(colon + 2));
        }
    }
    return object;
}

static void print_more(char *more) {
    char *rest = NULL;
    for (char *line = strtok_r(more, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        printf("                   %s\n", line);
}

static void print_device(const struct cvy_backend *backend, const char *name, struct device_about *about,
                         bool is_verbose) {
    printf("%-16s %s\n                 %s\n", name, about->line, backend->help);
    if (is_verbose)
        print_more(about->more);
}

static json_t *device_json(const struct cvy_backend *backend, int index, bool is_virtual,
                           struct device_about *about) {
    return json_pack("{s:s, s:i, s:b, s:s, s:s, s:o}", "backend", backend->name, "index", index, "virtual",
                     (int)is_virtual, "device", about->line, "help", backend->help, "details",
                     more_json(about->more));
}

static cvy_status print_backend(const struct cvy_backend *backend, const struct ways *w) {
    int count = backend->count();
    bool is_virtual = count == INT_MAX; /* as many as one likes: one stands for all */
    for (int i = 0; i < (is_virtual ? 1 : count); i++) {
        char name[64];
        struct device_about about = {0};
        snprintf(name, sizeof name, is_virtual ? "%s:0 ..." : "%s:%d", backend->name, i);
        cvy_status status = device_about(backend, i, w->log, &about);
        if (status == CVY_OK && w->list)
            json_array_append_new(w->list, device_json(backend, i, is_virtual, &about));
        else if (status == CVY_OK)
            print_device(backend, name, &about, w->is_verbose);
        device_about_free(&about);
        CVY_TRY(status);
    }
    return CVY_OK;
}

/* What is not here is told with the reason. */
static cvy_status print_plugin(const char *name, const struct ways *w) {
    const struct cvy_backend *backend;
    if (cvy_backend_load(name, &backend) == CVY_OK)
        return print_backend(backend, w);
    if (w->list)
        json_array_append_new(w->list, json_pack("{s:s, s:s}", "backend", name, "missing", cvy_error()));
    else
        printf("%-16s not here: %s\n", name, cvy_error());
    return CVY_OK;
}

static cvy_status print_all(const struct ways *w) {
    size_t n;
    const struct cvy_backend *const *table = cvy_backend_table(&n);
    for (size_t i = 0; i < n; i++)
        CVY_TRY(print_backend(table[i], w));
    const struct cvy_plugin_name *plugins = cvy_backend_plugins(&n);
    for (size_t i = 0; i < n; i++)
        CVY_TRY(print_plugin(plugins[i].name, w));
    return CVY_OK;
}

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    const struct options *o = values->options;
    CVY_TRY(command_no_rest(values));
    const struct ways ways = {log, o->json ? json_array() : NULL, o->verbose == 1};
    cvy_status status = print_all(&ways);
    if (status != CVY_OK) {
        json_decref(ways.list);
        return status;
    }
    return o->json ? command_print_json(ways.list) : CVY_OK;
}

static const struct flag_group *const groups[] = {&group_json, &group_verbose, &group_common, NULL};

const struct command command_devices = {
    .name = "devices",
    .usage = "[--verbose] [--json]",
    .help = "list the devices of this machine",
    .groups = groups,
    .run = run,
};

/* convoy devices: what this machine can train on. */
#include "cli/command.h"
#include "rt/backend.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* What the backend says about its device `index`. */
static cvy_status describe(const struct cvy_backend *backend, int index, const cvy_log_sink *log,
                           char **out) {
    const struct cvy_device_spec spec = {.index = index, .n_local = 1, .conv_algo = "auto", .log = log};
    struct cvy_device *device;
    struct cvy_text text = {0};
    CVY_TRY(backend->open(&spec, &device));
    backend->describe(device, &text);
    backend->close(device);
    return cvy_text_take(&text, out);
}

static cvy_status print_backend(const struct cvy_backend *backend, const cvy_log_sink *log, json_t *list) {
    int count = backend->count();
    bool is_virtual = count == INT_MAX; /* as many as one likes: one stands for all */
    for (int i = 0; i < (is_virtual ? 1 : count); i++) {
        char *text, name[64];
        snprintf(name, sizeof name, is_virtual ? "%s:0 ..." : "%s:%d", backend->name, i);
        CVY_TRY(describe(backend, i, log, &text));
        if (list)
            json_array_append_new(list, json_pack("{s:s, s:i, s:b, s:s, s:s}", "backend", backend->name,
                                                  "index", i, "virtual", (int)is_virtual, "device", text,
                                                  "help", backend->help));
        else
            printf("%-16s %s\n                 %s\n", name, text, backend->help);
        free(text);
    }
    return CVY_OK;
}

/* What is not here is told with the reason. */
static cvy_status print_plugin(const char *name, const cvy_log_sink *log, json_t *list) {
    const struct cvy_backend *backend;
    if (cvy_backend_load(name, &backend) == CVY_OK)
        return print_backend(backend, log, list);
    if (list)
        json_array_append_new(list, json_pack("{s:s, s:s}", "backend", name, "missing", cvy_error()));
    else
        printf("%-16s not here: %s\n", name, cvy_error());
    return CVY_OK;
}

static cvy_status print_all(const cvy_log_sink *log, json_t *list) {
    size_t n;
    const struct cvy_backend *const *table = cvy_backend_table(&n);
    for (size_t i = 0; i < n; i++)
        CVY_TRY(print_backend(table[i], log, list));
    const struct cvy_plugin_name *plugins = cvy_backend_plugins(&n);
    for (size_t i = 0; i < n; i++)
        CVY_TRY(print_plugin(plugins[i].name, log, list));
    return CVY_OK;
}

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    const struct options *o = values->options;
    CVY_TRY(command_no_rest(values));
    json_t *list = o->json ? json_array() : NULL;
    cvy_status status = print_all(log, list);
    if (status != CVY_OK) {
        json_decref(list);
        return status;
    }
    return o->json ? command_print_json(list) : CVY_OK;
}

static const struct flag_group *const groups[] = {&group_json, &group_common, NULL};

const struct command command_devices = {
    .name = "devices",
    .usage = "[--json]",
    .help = "list the devices of this machine",
    .groups = groups,
    .run = run,
};

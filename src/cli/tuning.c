/* See tuning.h. */
#include "cli/tuning.h"

#include "engine/run_folder.h"
#include "rt/backend.h"

#include <stdio.h>
#include <string.h>

static const struct flag tuning_flags[] = {
    {.name = "tuning",
     .type = FLAG_TEXT,
     .offset = offsetof(struct options, tuning),
     .help = "settings that `convoy bench tune` found for this network on this machine",
     .value_name = "FILE",
     .is_not_kept = true,
     .is_place = true},
};
const struct flag_group group_tuning = {.title = "Tuning", .flags = tuning_flags, .n = 1};

void tuning_processor(char name[TUNING_PROCESSOR]) {
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    *name = 0;
    while (file && !*name && fgets(line, sizeof line, file)) {
        const char *colon = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
        if (colon)
            cvy_text_line(name, TUNING_PROCESSOR, colon + 1 + strspn(colon + 1, " "));
    }
    if (file)
        fclose(file);
    for (size_t n = strlen(name); n > 0 && name[n - 1] == ' '; n--)
        name[n - 1] = 0;
}

cvy_status tuning_machine(struct cvy_text *out, int *n_cores) {
    const struct cvy_device_spec spec = {.n_local = 1, .conv_algo = "auto"};
    const struct cvy_backend *backend;
    struct cvy_device *device;
    char name[TUNING_PROCESSOR];
    CVY_TRY(cvy_backend_load("cpu", &backend));
    CVY_TRY(backend->open(&spec, &device));
    *n_cores = device->spec.n_threads;
    tuning_processor(name);
    cvy_text_printf(out, "%s%s%d cores, ", name, *name ? ", " : "", *n_cores);
    backend->kind(out);
    backend->close(device);
    return out->status;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static cvy_status check_machine(const json_t *root, const char *path) {
    const char *version = json_string_value(json_object_get(root, "convoy"));
    const char *there = json_string_value(json_object_get(root, "machine"));
    struct cvy_text here = {0};
    int n_cores;
    if (!version || !there || !json_is_object(json_object_get(root, "for")) ||
        !json_is_object(json_object_get(root, "flags")))
        return CVY_FAIL(CVY_ERR_DATA, "--tuning %s: is no file of `convoy bench tune`", path);
    if (strcmp(version, cvy_version()) != 0)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--tuning %s: made by convoy %s, this is %s: run `convoy bench tune` again", path,
                        version, cvy_version());
    cvy_status status = tuning_machine(&here, &n_cores);
    if (status == CVY_OK && strcmp(there, here.data) != 0)
        status =
            CVY_FAIL(CVY_ERR_USAGE, "--tuning %s: made on '%s', this is '%s': run `convoy bench tune` here",
                     path, there, here.data);
    cvy_text_free(&here);
    return status;
}

/* A flag's value as text into *out; false: it is not given. */
static bool print_flag(const struct flag_values *values, const char *name, struct cvy_text *out) {
    const struct flag *flag = flags_find(values, name);
    bool is_set = flag && flags_print(values, flag, out);
    return is_set && out->status == CVY_OK;
}

/* What was measured: another network, batch or precision may want other settings. */
static cvy_status check_purpose(const struct flag_values *values, const json_t *purpose, const char *path) {
    const char *name;
    json_t *value;
    cvy_status status = CVY_OK;
    json_object_foreach((json_t *)purpose, name, value) {
        struct cvy_text mine = {0};
        const char *want = json_string_value(value);
        if (status == CVY_OK && want && print_flag(values, name, &mine) && strcmp(mine.data, want) != 0)
            status = CVY_FAIL(CVY_ERR_USAGE,
                              "--tuning %s: made for --%s %s, not %s: leave it out, or tune for this", path,
                              name, want, mine.data);
        cvy_text_free(&mine);
    }
    return status;
}

static cvy_status set_flag(struct flag_values *values, const char *name, const json_t *value,
                           const char *path) {
    struct cvy_text mine = {0};
    const char *text = json_string_value(value);
    char *kept;
    if (!text)
        return CVY_FAIL(CVY_ERR_DATA, "--tuning %s: flag '%s' is no text", path, name);
    cvy_status status = CVY_OK;
    if (flags_given(values, name)) {
        if (print_flag(values, name, &mine) && strcmp(mine.data, text) != 0)
            status = CVY_FAIL(CVY_ERR_USAGE, "--tuning %s says --%s %s: leave out --%s %s, or the tuning",
                              path, name, text, name, mine.data);
        cvy_text_free(&mine);
        return status;
    }
    CVY_TRY(cvy_pool_strdup(&values->pool, text, &kept));
    status = flags_set(values, name, kept);
    return status == CVY_OK ? status : cvy_fail_prefix(status, "--tuning %s: ", path);
}

/* The four that a tuning may set. */
static bool is_tuned(const char *name) {
    static const char *const names[] = {"devices", "threads-per-device", "shards", "conv-algo"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

static cvy_status apply(struct flag_values *values, const json_t *root, const char *path) {
    const char *name;
    json_t *value;
    CVY_TRY(check_machine(root, path));
    CVY_TRY(check_purpose(values, json_object_get(root, "for"), path));
    json_object_foreach(json_object_get(root, "flags"), name, value) {
        if (!is_tuned(name))
            return CVY_FAIL(CVY_ERR_DATA, "--tuning %s: '%s' is no flag that a tuning sets", path, name);
        CVY_TRY(set_flag(values, name, value, path));
    }
    return CVY_OK;
}

cvy_status tuning_apply(struct flag_values *values) {
    const struct options *o = values->options;
    json_error_t error;
    if (!o->tuning)
        return CVY_OK;
    if (o->resume && strcmp(o->resume, CVY_RESUME_AUTO) != 0)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--tuning and --resume: a run that goes on keeps its settings; leave --tuning out");
    json_t *root = flags_load_json(o->tuning, &error);
    if (!root)
        return CVY_FAIL(CVY_ERR_DATA, "--tuning %s: %s", o->tuning, error.text);
    cvy_status status = apply(values, root, o->tuning);
    json_decref(root);
    return status;
}

/* See profile_file.h. */
#include "engine/profile_file.h"

#include "engine/replay_json.h"

#include <math.h>
#include <stdlib.h>

/* ---- devices -------------------------------------------------------------------------------------------- */

static cvy_status read_operators(const json_t *list, struct cvy_profile_device *out) {
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *from = json_array_get(list, k);
        const struct cvy_profile_operator op = {json_string_value(json_object_get(from, "name")),
                                                json_number_value(json_object_get(from, "us")),
                                                json_number_value(json_object_get(from, "calls"))};
        if (!op.name)
            return CVY_FAIL(CVY_ERR_DATA, "operator %zu has no name", k);
        CVY_TRY(cvy_vec_push(&out->operators, op));
    }
    return CVY_OK;
}

static cvy_status read_bytes(const json_t *list, struct cvy_profile_device *out) {
    for (size_t k = 0; k < json_array_size(list); k++)
        CVY_TRY(cvy_vec_push(&out->bucket_bytes, json_number_value(json_array_get(list, k))));
    return CVY_OK;
}

static cvy_status read_device(const json_t *from, struct cvy_profile_file *out) {
    const struct cvy_profile_device device = {.name = json_string_value(json_object_get(from, "name")),
                                              .process = json_integer_value(json_object_get(from, "process")),
                                              .cost = json_number_value(json_object_get(from, "cost"))};
    const json_int_t stage = json_integer_value(json_object_get(from, "stage")),
                     replica = json_integer_value(json_object_get(from, "replica"));
    if (!device.name || stage < 0 || stage > 4096 || replica < 0 || replica > 65536)
        return CVY_FAIL(CVY_ERR_DATA, "device %zu has no name, stage or replica", out->devices.n);
    CVY_TRY(cvy_vec_push(&out->devices, device));
    CVY_TRY(cvy_vec_push(&out->replay.devices,
                         (struct cvy_replay_device){.stage = (int32_t)stage, .replica = (int32_t)replica}));
    if (out->replay.n_stages <= stage)
        out->replay.n_stages = (int32_t)stage + 1;
    CVY_TRY(read_operators(json_object_get(from, "operators"), &out->devices.data[out->devices.n - 1]));
    CVY_TRY(read_bytes(json_object_get(from, "bucket_bytes"), &out->devices.data[out->devices.n - 1]));
    return cvy_replay_read_instructions(json_object_get(from, "instructions"),
                                        &out->replay.devices.data[out->replay.devices.n - 1]);
}

/* ---- the file ------------------------------------------------------------------------------------------- */

/* NULL: it is missing, or no text. */
static cvy_status read_text(const json_t *root, const char *key, const char **out) {
    *out = json_string_value(json_object_get(root, key));
    return *out ? CVY_OK : CVY_FAIL(CVY_ERR_DATA, "there is no text \"%s\"", key);
}

static cvy_status read_number(const json_t *root, const char *key, double *out) {
    const json_t *value = json_object_get(root, key);
    *out = json_number_value(value);
    return json_is_number(value) && isfinite(*out) && *out >= 0
               ? CVY_OK
               : CVY_FAIL(CVY_ERR_DATA, "there is no number \"%s\" of at least 0", key);
}

static cvy_status read_count(const json_t *root, const char *key, int64_t *out) {
    double value;
    CVY_TRY(read_number(root, key, &value));
    *out = value < 1e15 ? (int64_t)value : INT64_C(1000000000000000);
    return CVY_OK;
}

static cvy_status read_head(const json_t *root, struct cvy_profile_file *out) {
    const struct {
        const char *key;
        int64_t *to;
    } counts[] = {
        {"images", &out->images},   {"batch_size", &out->batch_size}, {"accumulate", &out->accumulate},
        {"shards", &out->shards},   {"threads", &out->threads},       {"processes", &out->processes},
        {"workers", &out->workers}, {"cores", &out->cores},           {"steps", &out->steps}};
    const struct {
        const char *key;
        double *to;
    } numbers[] = {{"step_us", &out->step_us},
                   {"wait_us", &out->wait_us},
                   {"span_us", &out->span_us},
                   {"bucket_mb", &out->bucket_mb},
                   {"first_bucket_mb", &out->first_bucket_mb},
                   {"device_memory", &out->device_memory}};
    int64_t version;
    CVY_TRY(read_count(root, "version", &version));
    if (version != 1)
        return CVY_FAIL(CVY_ERR_DATA, "its version is %lld, this program reads version 1",
                        (long long)version);
    CVY_TRY(read_text(root, "model", &out->model));
    CVY_TRY(read_text(root, "data", &out->data));
    CVY_TRY(read_text(root, "strategy", &out->strategy));
    CVY_TRY(read_text(root, "device_list", &out->device_list));
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        CVY_TRY(read_count(root, counts[k].key, counts[k].to));
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        CVY_TRY(read_number(root, numbers[k].key, numbers[k].to));
    out->has_streams = json_is_true(json_object_get(root, "has_streams"));
    return CVY_OK;
}

static cvy_status read_all(struct cvy_profile_file *out) {
    const json_t *devices = json_object_get(out->root, "devices");
    CVY_TRY(read_head(out->root, out));
    for (size_t d = 0; d < json_array_size(devices); d++)
        CVY_TRY(read_device(json_array_get(devices, d), out));
    if (out->devices.n == 0)
        return CVY_FAIL(CVY_ERR_DATA, "there are no devices in it");
    out->replay.is_between_processes = out->processes > 1;
    return cvy_replay_link(&out->replay);
}

cvy_status cvy_profile_file_read(json_t *root, const char *path, struct cvy_profile_file *out) {
    out->root = root;
    cvy_status status = read_all(out);
    return status == CVY_ERR_DATA ? cvy_fail_prefix(status, "%s: ", path) : status;
}

void cvy_profile_file_free(struct cvy_profile_file *file) {
    for (size_t d = 0; d < file->devices.n; d++) {
        cvy_vec_free(&file->devices.data[d].operators);
        cvy_vec_free(&file->devices.data[d].bucket_bytes);
    }
    cvy_vec_free(&file->devices);
    cvy_replay_free(&file->replay);
    json_decref(file->root);
    *file = (struct cvy_profile_file){0};
}

/* See profile.h: the parts of all processes become trace.json and profile.json. */
#include "engine/profile.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/thread.h"
#include "engine/json_file.h"
#include "engine/replay_json.h"
#include "engine/world.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- gathering ------------------------------------------------------------------------------------------ */

/* Between machines clocks differ. The processes meet; then each says what its clock shows, and which machine it is
   on. */
static cvy_status add_clock(cvy_world *world, json_t *part) {
    char *boot = NULL;
    size_t n;
    int64_t meet = 0;
    CVY_TRY(cvy_world_max(world, &meet, "clocks"));
    const int64_t now = cvy_now_ns();
    if (cvy_read_file("/proc/sys/kernel/random/boot_id", 256, &boot, &n) != CVY_OK)
        boot = NULL;
    const bool is_set = json_object_set_new(part, "clock_ns", json_integer(now)) == 0 &&
                        json_object_set_new(part, "boot", json_string(boot ? boot : "")) == 0;
    free(boot);
    return is_set ? CVY_OK : CVY_FAIL(CVY_ERR_MEMORY, "out of memory for the profile");
}

static cvy_status parse_parts(const char *all, size_t n_bytes, int n, json_t **out) {
    *out = json_array();
    for (int r = 0; r < n; r++) {
        json_t *part = json_loads(all + (size_t)r * n_bytes, 0, NULL);
        if (!part || json_array_append_new(*out, part) != 0)
            return CVY_FAIL(CVY_ERR_FAILED, "the profile of rank %d cannot be read", r);
    }
    return CVY_OK;
}

/* The parts of all processes, rank by rank. Collective. */
static cvy_status gather(cvy_world *world, json_t *part, json_t **out) {
    const int size = cvy_world_size(world);
    char *text = NULL, *all = NULL;
    cvy_status status;
    CVY_TRY(add_clock(world, part));
    text = json_dumps(part, JSON_COMPACT | JSON_REAL_PRECISION(15));
    if (!text)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory for the profile");
    int64_t n_bytes = (int64_t)strlen(text) + 1;
    CVY_TRY_OUT(cvy_world_max(world, &n_bytes, "size of profiles"));
    CVY_TRY_OUT(CVY_ALLOC(all, (size_t)(n_bytes * size)));
    memcpy(all + (int64_t)cvy_world_rank(world) * n_bytes, text, strlen(text) + 1);
    CVY_TRY_OUT(cvy_world_gather(world, all, (size_t)n_bytes, "profiles"));
    status = parse_parts(all, (size_t)n_bytes, size, out);
out:
    free(text);
    free(all);
    return status;
}

/* What is to be added to this part's times to have rank 0's. */
static int64_t clock_shift(const json_t *parts, size_t rank) {
    const json_t *first = json_array_get(parts, 0), *mine = json_array_get(parts, rank);
    if (json_equal(json_object_get(first, "boot"), json_object_get(mine, "boot")))
        return 0;
    return json_integer_value(json_object_get(first, "clock_ns")) -
           json_integer_value(json_object_get(mine, "clock_ns"));
}

/* ---- own times ------------------------------------------------------------------------------------------ */

static cvy_status add_device(struct cvy_replay *replay, const json_t *device) {
    struct cvy_replay_device to = {.stage = (int32_t)json_integer_value(json_object_get(device, "stage")),
                                   .replica =
                                       (int32_t)json_integer_value(json_object_get(device, "replica"))};
    CVY_TRY(cvy_vec_push(&replay->devices, to));
    return cvy_replay_read_instructions(json_object_get(device, "instructions"),
                                        &replay->devices.data[replay->devices.n - 1]);
}

/* ends[1 + n]: of one step. */
static void read_ends(const json_t *step, int64_t shift, int64_t *ends, size_t n) {
    for (size_t k = 0; k < 1 + n; k++) {
        const int64_t value = json_integer_value(json_array_get(step, k));
        ends[k] = k == 0 ? value + shift : ends[k - 1] + value;
    }
}

/* Adds step i of all devices; list[d] is a device, shift[d] its clock's. */
static cvy_status add_step(struct cvy_replay *replay, json_t *const *list, const int64_t *shift, size_t i) {
    int64_t **ends = NULL;
    cvy_status status;
    CVY_TRY(CVY_ALLOC(ends, replay->devices.n));
    for (size_t d = 0; d < replay->devices.n; d++) {
        const size_t n = replay->devices.data[d].instrs.n;
        CVY_TRY_OUT(CVY_ALLOC(ends[d], 1 + n));
        read_ends(json_array_get(json_object_get(list[d], "spans"), i), shift[d], ends[d], n);
    }
    status = cvy_replay_add_own(replay, (const int64_t *const *)ends);
out:
    for (size_t d = 0; d < replay->devices.n; d++)
        free(ends[d]);
    free(ends);
    return status;
}

/* Steps of which all devices have the spans: they keep the same ones. */
static size_t count_steps(json_t *const *list, size_t n) {
    size_t least = SIZE_MAX;
    for (size_t d = 0; d < n; d++) {
        const size_t here = json_array_size(json_object_get(list[d], "spans"));
        least = here < least ? here : least;
    }
    return n ? least : 0;
}

/* Gives each instruction of the devices "us", the mean of what it took by itself, and takes their spans away. */
static cvy_status settle(json_t *const *list, const int64_t *shift, size_t n, bool is_between_processes) {
    struct cvy_replay replay = {.is_between_processes = is_between_processes};
    const size_t n_steps = count_steps(list, n);
    cvy_status status = CVY_OK;
    for (size_t d = 0; d < n; d++) {
        CVY_TRY_OUT(add_device(&replay, list[d]));
        if (replay.devices.data[d].stage >= replay.n_stages)
            replay.n_stages = replay.devices.data[d].stage + 1;
    }
    CVY_TRY_OUT(cvy_replay_link(&replay));
    for (size_t i = 0; i < n_steps; i++)
        CVY_TRY_OUT(add_step(&replay, list, shift, i));
    for (size_t d = 0; d < n; d++) {
        json_t *instructions = json_object_get(list[d], "instructions");
        for (size_t k = 0; k < json_array_size(instructions); k++)
            json_object_set_new(
                json_array_get(instructions, k), "us",
                json_real(n_steps ? replay.devices.data[d].instrs.data[k].own_us / (double)n_steps : 0));
        json_object_del(list[d], "spans");
    }
out:
    cvy_replay_free(&replay);
    return status;
}

/* ---- the files ------------------------------------------------------------------------------------------ */

/* Takes `root`. */
static cvy_status write_json(const char *dir, const char *name, json_t *root, size_t flags) {
    char *path;
    cvy_status status = cvy_path(dir, name, "", &path);
    if (status != CVY_OK) {
        json_decref(root);
        return status;
    }
    status = cvy_write_json(path, root, flags);
    free(path);
    return status;
}

/* Names of the tracks, and the events of all processes by rank 0's clock. */
static cvy_status make_trace(const struct cvy_profile *p, const json_t *parts, json_t *events) {
    const int data_tid = 2 * p->session->plan->n_devices;
    for (size_t r = 0; r < json_array_size(parts); r++) {
        const json_t *part = json_array_get(parts, r), *devices = json_object_get(part, "devices");
        const json_t *trace = json_object_get(part, "trace");
        const double later_us = 1e-3 * (double)(json_integer_value(json_object_get(part, "origin_ns")) +
                                                clock_shift(parts, r) - p->origin_ns);
        CVY_TRY(cvy_timeline_name((int)r, data_tid + (int)r, "data", events));
        for (size_t d = 0; d < json_array_size(devices); d++) {
            const json_t *device = json_array_get(devices, d);
            const char *name = json_string_value(json_object_get(device, "name"));
            const int number = (int)json_integer_value(json_object_get(device, "device"));
            char label[96];
            snprintf(label, sizeof label, "%s compute", name);
            CVY_TRY(cvy_timeline_name((int)r, 2 * number, label, events));
            snprintf(label, sizeof label, "%s communication", name);
            CVY_TRY(cvy_timeline_name((int)r, 2 * number + 1, label, events));
        }
        for (size_t e = 0; e < json_array_size(trace); e++) {
            json_t *event = json_array_get(trace, e);
            const double ts = json_number_value(json_object_get(event, "ts")) + later_us;
            if (json_object_set_new(event, "ts", json_real(ts)) || json_array_append(events, event))
                return CVY_FAIL(CVY_ERR_MEMORY, "out of memory for the trace");
        }
    }
    return CVY_OK;
}

static cvy_status write_trace(const struct cvy_profile *p, const char *dir, const json_t *about,
                              const json_t *parts) {
    json_t *events = json_array();
    cvy_status status = make_trace(p, parts, events);
    if (status == CVY_OK)
        status =
            write_json(dir, "trace.json", json_pack("{s:O, s:O}", "otherData", about, "traceEvents", events),
                       JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(events);
    return status;
}

/* The times of the process whose devices had least time to work in: the others wait for it. */
static const json_t *slowest(const json_t *parts) {
    const json_t *found = json_array_get(parts, 0);
    for (size_t r = 1; r < json_array_size(parts); r++) {
        const json_t *part = json_array_get(parts, r);
        if (json_number_value(json_object_get(part, "span_us")) <
            json_number_value(json_object_get(found, "span_us")))
            found = part;
    }
    return found;
}

static cvy_status write_sums(const struct cvy_profile *p, const char *dir, const json_t *about,
                             const json_t *parts) {
    const struct cvy_plan *plan = p->session->plan;
    static const char *const times[] = {"steps", "step_us", "wait_us", "span_us"};
    json_t *root = json_deep_copy(about), *devices = json_array(), **list = NULL;
    int64_t *shift = NULL;
    size_t n = 0;
    cvy_status status;
    CVY_TRY_OUT(CVY_ALLOC(list, (size_t)plan->n_devices));
    CVY_TRY_OUT(CVY_ALLOC(shift, (size_t)plan->n_devices));
    for (size_t r = 0; r < json_array_size(parts); r++) {
        const json_t *here = json_object_get(json_array_get(parts, r), "devices");
        for (size_t d = 0; d < json_array_size(here) && n < (size_t)plan->n_devices; d++, n++) {
            list[n] = json_array_get(here, d);
            shift[n] = clock_shift(parts, r);
            json_array_append(devices, list[n]);
        }
    }
    CVY_TRY_OUT(settle(list, shift, n, json_array_size(parts) > 1));
    for (size_t k = 0; k < sizeof times / sizeof *times; k++)
        json_object_set(root, times[k], json_object_get(slowest(parts), times[k]));
    json_object_set(root, "devices", devices);
    status = write_json(dir, "profile.json", root, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    root = NULL;
out:
    json_decref(root);
    json_decref(devices);
    free(list);
    free(shift);
    return status;
}

static int64_t permitted_cores(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* The members of profile.json that say what was run. */
static json_t *describe(const struct cvy_task *task) {
    const cvy_plan_options *o = &task->plan->options;
    struct cvy_plan_facts f;
    cvy_plan_facts(task->plan, &f);
    return json_pack(
        "{s:i, s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:s, s:s, s:i, s:I, s:i, s:i, s:I, s:f, s:f, s:I, s:b}",
        "version", 1, "convoy", cvy_version(), "model", task->options.model, "data",
        task->options.data ? task->options.data : "", "images", (json_int_t)task->train->n, "batch_size",
        (json_int_t)task->options.loader.batch_size, "accumulate", (json_int_t)o->accumulate, "strategy",
        f.strategy, "schedule", o->schedule ? o->schedule : "", "device_list", f.devices, "processes",
        f.n_processes, "shards", (json_int_t)f.shards, "threads", f.threads, "workers",
        task->options.loader.workers, "cores", (json_int_t)permitted_cores(), "bucket_mb", o->bucket_mb,
        "first_bucket_mb", o->first_bucket_mb, "device_memory", (json_int_t)o->device_memory, "has_streams",
        (int)(task->plan->backend->streams != NULL));
}

cvy_status cvy_profile_save(const struct cvy_profile *p, const struct cvy_task *task, const char *dir) {
    cvy_world *world = p->session->plan->options.world;
    json_t *part = NULL, *parts = NULL, *about = NULL;
    cvy_status status;
    CVY_TRY_OUT(cvy_profile_part(p, &part));
    CVY_TRY_OUT(gather(world, part, &parts));
    if (cvy_world_rank(world) > 0)
        goto out;
    about = describe(task);
    if (!about) {
        status = CVY_FAIL(CVY_ERR_MEMORY, "out of memory for the profile");
        goto out;
    }
    CVY_TRY_OUT(write_trace(p, dir, about, parts));
    CVY_TRY_OUT(write_sums(p, dir, about, parts));
out:
    json_decref(about);
    json_decref(part);
    json_decref(parts);
    return status;
}

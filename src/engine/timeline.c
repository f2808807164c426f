/* The timeline recorder: see timeline.h. */
#include "engine/timeline.h"

#include "base/mem.h"
#include "base/text.h"
#include "graph/graph_text.h"

#include <stdlib.h>

cvy_status cvy_timeline_open(struct cvy_timeline *timeline, size_t cap) {
    CVY_TRY(CVY_ALLOC(timeline->ring, cap));
    timeline->cap = cap;
    timeline->n = 0;
    return CVY_OK;
}

void cvy_timeline_close(struct cvy_timeline *timeline) {
    free(timeline->ring);
    *timeline = (struct cvy_timeline){0};
}

void cvy_timeline_clear(struct cvy_timeline *timeline) { timeline->n = 0; }

void cvy_timeline_add(struct cvy_timeline *timeline, const struct cvy_event *event) {
    if (timeline->ring)
        timeline->ring[timeline->n++ % timeline->cap] = *event;
}

const struct cvy_event *cvy_timeline_get(const struct cvy_timeline *timeline, size_t i) {
    size_t here = timeline->n < timeline->cap ? timeline->n : timeline->cap;
    return i < here ? &timeline->ring[(timeline->n - here + i) % timeline->cap] : NULL;
}

/* ---- export ------------------------------------------------------------------------------------------ */

/* Takes `value`. */
static bool set(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value) == 0;
}

/* `layer` is printable UTF-8. */
static json_t *arguments(const struct cvy_event *event, const char *layer, int64_t step) {
    json_t *args = json_pack("{s:I}", "step", (json_int_t)step);
    bool is_whole = args && (event->shard < 0 || set(args, "shard", json_integer(event->shard))) &&
                    (event->bucket < 0 || set(args, "bucket", json_integer(event->bucket))) &&
                    (!layer || set(args, "layer", json_string(layer)));
    if (is_whole)
        return args;
    json_decref(args);
    return NULL;
}

/* Takes `value`. */
static cvy_status append(json_t *array, json_t *value) {
    if (!value || json_array_append_new(array, value) != 0)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory for a timeline's events");
    return CVY_OK;
}

static cvy_status export_event(const struct cvy_event *event, int device, int64_t step, int64_t origin_ns,
                               json_t *array) {
    struct cvy_text layer = {0};
    if (event->name)
        cvy_text_escape(&layer, event->name);
    json_t *args = layer.status == CVY_OK ? arguments(event, layer.data, step) : NULL;
    cvy_text_free(&layer);
    return append(array, args ? json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:o}", "name", event->what,
                                          "cat", event->name ? cvy_phase_names[event->phase] : "instruction",
                                          "ph", "X", "pid", 0, "tid", device, "ts",
                                          (double)(event->start_ns - origin_ns) * 1e-3, "dur",
                                          (double)(event->end_ns - event->start_ns) * 1e-3, "args", args)
                              : NULL);
}

cvy_status cvy_timeline_export(const struct cvy_timeline *timeline, int device, const char *label,
                               int64_t step, int64_t origin_ns, json_t *array) {
    const struct cvy_event *event;
    CVY_TRY(append(array, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", "thread_name", "ph", "M", "pid",
                                    0, "tid", device, "args", "name", label)));
    for (size_t i = 0; (event = cvy_timeline_get(timeline, i)); i++)
        CVY_TRY(export_event(event, device, step, origin_ns, array));
    return CVY_OK;
}

/* The timeline recorder: see timeline.h. */
#include "engine/timeline.h"

#include "engine/event_kind.h"

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
    json_t *args =
        json_pack("{s:I, s:s}", "step", (json_int_t)step, "kind", cvy_kind_names[cvy_kind_of_event(event)]);
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

static cvy_status export_event(const struct cvy_event *event, const struct cvy_track *track, int64_t step,
                               int64_t origin_ns, json_t *array) {
    const bool is_talk = cvy_kind_is_talk(cvy_kind_of_event(event));
    struct cvy_text layer = {0};
    if (event->name)
        cvy_text_escape(&layer, event->name);
    json_t *args = layer.status == CVY_OK ? arguments(event, layer.data, step) : NULL;
    cvy_text_free(&layer);
    return append(array,
                  args ? json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:o}", "name", event->what, "cat",
                                   event->name ? cvy_phase_names[event->phase] : "instruction", "ph", "X",
                                   "pid", track->process, "tid", is_talk ? track->talk : track->tid, "ts",
                                   (double)(event->start_ns - origin_ns) * 1e-3, "dur",
                                   (double)(event->end_ns - event->start_ns) * 1e-3, "args", args)
                       : NULL);
}

cvy_status cvy_timeline_name(int process, int tid, const char *label, json_t *array) {
    return append(array, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", "thread_name", "ph", "M", "pid",
                                   process, "tid", tid, "args", "name", label));
}

cvy_status cvy_timeline_export(const struct cvy_timeline *timeline, const struct cvy_track *track,
                               int64_t step, int64_t origin_ns, json_t *array) {
    const struct cvy_event *event;
    for (size_t i = 0; (event = cvy_timeline_get(timeline, i)); i++)
        CVY_TRY(export_event(event, track, step, origin_ns, array));
    return CVY_OK;
}

cvy_status cvy_timeline_span(const char *what, const struct cvy_track *track, int64_t step,
                             const int64_t ns[2], int64_t origin_ns, json_t *array) {
    return append(array, json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:{s:I}}", "name", what, "cat",
                                   "data", "ph", "X", "pid", track->process, "tid", track->tid, "ts",
                                   (double)(ns[0] - origin_ns) * 1e-3, "dur", (double)(ns[1] - ns[0]) * 1e-3,
                                   "args", "step", (json_int_t)step));
}

/* ---- spans ------------------------------------------------------------------------------------------- */

cvy_status cvy_spans_open(struct cvy_spans *spans, size_t n_instr, size_t cap) {
    CVY_TRY(CVY_ALLOC(spans->ns, cap * (1 + n_instr)));
    spans->n_instr = n_instr;
    spans->cap = cap;
    spans->n = 0;
    return CVY_OK;
}

void cvy_spans_close(struct cvy_spans *spans) {
    free(spans->ns);
    *spans = (struct cvy_spans){0};
}

int64_t *cvy_spans_begin(struct cvy_spans *spans) {
    return spans->is_on ? spans->ns + spans->n++ % spans->cap * (1 + spans->n_instr) : NULL;
}

const int64_t *cvy_spans_get(const struct cvy_spans *spans, size_t i) {
    size_t here = spans->n < spans->cap ? spans->n : spans->cap;
    return i < here ? spans->ns + (spans->n - here + i) % spans->cap * (1 + spans->n_instr) : NULL;
}

/* See profile.h: what is recorded while the run goes on, and this process's part of the result. */
#include "engine/profile.h"

#include "base/thread.h"
#include "engine/event_kind.h"
#include "graph/graph_text.h"

#include <stdlib.h>
#include <string.h>

enum {
    N_WARM_UP = 3,         /* first steps of a run, with cold memory */
    N_TRACED = 3,          /* steps of which every operator is kept */
    N_KEPT = 32,           /* newest steps of which the instructions are kept */
    MOST_EVENTS = 1 << 15, /* of a device in a traced step */
};

cvy_status cvy_profile_open(struct cvy_profile *p, struct cvy_session *session, int64_t n_full,
                            int64_t n_left) {
    struct cvy_team *team = &session->plan->team;
    p->session = session;
    p->n_full = n_full;
    p->n_warm = n_left > N_WARM_UP ? N_WARM_UP : n_left - 1;
    p->trace = json_array();
    if (!p->trace)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory for the profile");
    for (int k = 0; k < team->n; k++)
        CVY_TRY(cvy_spans_open(&team->workers[k].spans, team->workers[k].program->train.n, N_KEPT));
    return CVY_OK;
}

void cvy_profile_close(struct cvy_profile *p) {
    for (int k = 0; p->session && k < p->session->plan->team.n; k++)
        cvy_spans_close(&p->session->plan->team.workers[k].spans);
    json_decref(p->trace);
    cvy_vec_free(&p->sums);
    *p = (struct cvy_profile){0};
}

/* ---- steps ---------------------------------------------------------------------------------------------- */

static void switch_spans(const struct cvy_profile *p, bool is_on) {
    struct cvy_team *team = &p->session->plan->team;
    for (int k = 0; k < team->n; k++)
        team->workers[k].spans.is_on = is_on;
}

static cvy_status open_timelines(const struct cvy_profile *p) {
    struct cvy_team *team = &p->session->plan->team;
    for (int k = 0; k < team->n; k++) {
        if (!team->workers[k].timeline.ring)
            CVY_TRY(cvy_timeline_open(&team->workers[k].timeline, MOST_EVENTS));
        cvy_timeline_clear(&team->workers[k].timeline);
    }
    return CVY_OK;
}

/* The first step of an epoch waits for a loader that begins, the last may be a small one: they do not count. */
cvy_status cvy_profile_begin(struct cvy_profile *p, int64_t step) {
    if (!p->session)
        return CVY_OK;
    p->is_counted = p->n_seen++ >= p->n_warm && step < p->n_full && (step > 0 || p->n_full < 3);
    p->is_traced = p->is_counted && p->n_traced < N_TRACED;
    p->step_wait_ns = p->step_span_ns = 0;
    switch_spans(p, p->is_counted);
    if (p->is_traced)
        CVY_TRY(open_timelines(p));
    p->begun_ns = p->lap_ns = cvy_now_ns();
    if (p->n_traced == 0)
        p->origin_ns = p->begun_ns;
    return CVY_OK;
}

static int data_tid(const struct cvy_profile *p) { return 2 * p->session->plan->n_devices; }

/* The time since the last lap goes to *sum. */
static cvy_status lap(struct cvy_profile *p, int64_t *sum, const char *what) {
    if (!p->session)
        return CVY_OK;
    const int64_t now = cvy_now_ns(), ns[2] = {p->lap_ns, now};
    const int rank = cvy_world_rank(p->session->plan->options.world);
    const struct cvy_track track = {rank, data_tid(p) + rank, 0};
    *sum += now - p->lap_ns;
    p->lap_ns = now;
    return p->is_traced ? cvy_timeline_span(what, &track, p->n_traced, ns, p->origin_ns, p->trace) : CVY_OK;
}

cvy_status cvy_profile_loaded(struct cvy_profile *p) { return lap(p, &p->step_wait_ns, "wait for images"); }
cvy_status cvy_profile_stepped(struct cvy_profile *p) { return lap(p, &p->step_span_ns, "devices at work"); }

static cvy_status add_sum(struct cvy_profile *p, int device, const struct cvy_event *e) {
    const double us = (double)(e->end_ns - e->start_ns) * 1e-3;
    for (size_t i = 0; i < p->sums.n; i++) {
        struct cvy_profile_sum *sum = &p->sums.data[i];
        if (sum->device == device && sum->what == e->what) {
            sum->us += us;
            sum->n_calls++;
            return CVY_OK;
        }
    }
    return cvy_vec_push(&p->sums, (struct cvy_profile_sum){device, e->what, us, 1});
}

/* Takes the events of the step that was just traced. */
static cvy_status end_trace(struct cvy_profile *p) {
    struct cvy_plan *plan = p->session->plan;
    const int rank = cvy_world_rank(plan->options.world);
    for (int k = 0; k < plan->team.n; k++) {
        struct cvy_worker *w = &plan->team.workers[k];
        const struct cvy_track track = {rank, 2 * w->rank, 2 * w->rank + 1};
        const struct cvy_event *event;
        CVY_TRY(cvy_timeline_export(&w->timeline, &track, p->n_traced, p->origin_ns, p->trace));
        for (size_t e = 0; (event = cvy_timeline_get(&w->timeline, e)); e++) {
            if (event->name)
                CVY_TRY(add_sum(p, k, event));
        }
        if (plan->options.timeline)
            cvy_timeline_clear(&w->timeline);
        else
            cvy_timeline_close(&w->timeline);
    }
    p->n_traced++;
    return CVY_OK;
}

cvy_status cvy_profile_end(struct cvy_profile *p) {
    int64_t host_ns = 0;
    if (!p->session)
        return CVY_OK;
    CVY_TRY(lap(p, &host_ns, "host"));
    switch_spans(p, false);
    if (p->is_counted) {
        p->n_counted++;
        p->step_ns += p->lap_ns - p->begun_ns;
        p->wait_ns += p->step_wait_ns;
        p->span_ns += p->step_span_ns;
    }
    return p->is_traced ? end_trace(p) : CVY_OK;
}

/* ---- this process's part -------------------------------------------------------------------------------- */

static json_t *operators_of(const struct cvy_profile *p, int device) {
    json_t *list = json_array();
    for (size_t i = 0; list && i < p->sums.n; i++) {
        const struct cvy_profile_sum *sum = &p->sums.data[i];
        if (sum->device == device)
            json_array_append_new(list, json_pack("{s:s, s:f, s:f}", "name", sum->what, "us",
                                                  sum->us / (double)p->n_traced, "calls",
                                                  (double)sum->n_calls / (double)p->n_traced));
    }
    return list;
}

static json_t *instructions_of(const struct cvy_worker *w) {
    json_t *list = json_array();
    for (size_t k = 0; list && k < w->program->train.n; k++) {
        const struct cvy_instr *i = &w->program->train.data[k];
        json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:i, s:i}", "do", cvy_instr_name(i->kind),
                                              "phase", cvy_phase_names[i->phase], "shard", i->shard, "part",
                                              i->part, "bucket", i->bucket));
    }
    return list;
}

static json_t *bucket_bytes_of(const struct cvy_program *program) {
    json_t *list = json_array();
    for (size_t b = 0; list && b < program->buckets.n; b++)
        json_array_append_new(list,
                              json_integer((json_int_t)(program->buckets.data[b].n_floats * sizeof(float))));
    return list;
}

/* Of each step that is kept: when it began, in ns of this machine's clock, and how long after the one before it each
   instruction ended. */
static json_t *spans_of(const struct cvy_spans *spans) {
    json_t *list = json_array();
    const int64_t *at;
    for (size_t i = 0; list && (at = cvy_spans_get(spans, i)); i++) {
        json_t *step = json_array();
        for (size_t k = 0; step && k < 1 + spans->n_instr; k++)
            json_array_append_new(step, json_integer(k == 0 ? at[0] : at[k] - at[k - 1]));
        json_array_append_new(list, step);
    }
    return list;
}

static json_t *device_part(const struct cvy_profile *p, int k) {
    const struct cvy_plan *plan = p->session->plan;
    const struct cvy_worker *w = &plan->team.workers[k];
    double share = 0;
    (void)cvy_plan_stage_layers(plan, w->program->stage, &share);
    return json_pack("{s:i, s:s, s:i, s:i, s:i, s:f, s:o, s:o, s:o, s:o}", "device", (int)w->rank, "name",
                     w->device->name, "process", cvy_world_rank(plan->options.world), "stage",
                     (int)w->program->stage, "replica", (int)w->program->replica, "cost", share, "operators",
                     operators_of(p, k), "bucket_bytes", bucket_bytes_of(w->program), "instructions",
                     instructions_of(w), "spans", spans_of(&w->spans));
}

cvy_status cvy_profile_part(const struct cvy_profile *p, json_t **out) {
    const struct cvy_team *team = &p->session->plan->team;
    const double n = p->n_counted ? (double)p->n_counted : 1;
    json_t *devices = json_array();
    for (int k = 0; devices && k < team->n; k++)
        json_array_append_new(devices, device_part(p, k));
    *out = json_pack("{s:I, s:f, s:f, s:f, s:I, s:O, s:o}", "steps", (json_int_t)p->n_counted, "step_us",
                     (double)p->step_ns * 1e-3 / n, "wait_us", (double)p->wait_ns * 1e-3 / n, "span_us",
                     (double)p->span_ns * 1e-3 / n, "origin_ns", (json_int_t)p->origin_ns, "trace", p->trace,
                     "devices", devices);
    return *out ? CVY_OK : CVY_FAIL(CVY_ERR_MEMORY, "out of memory for the profile");
}

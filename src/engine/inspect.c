/* What tests look at inside a session: gradients, and programs exchanged for their text. */
#include "engine/session.h"

#include <string.h>

struct request {
    const char *name, *text;
    float *out;
    int device;
};

static cvy_status gradient_task(struct cvy_worker *worker, void *argument) {
    const struct request *request = argument;
    const struct cvy_graph *g = worker->plan->train;
    const struct cvy_stored *stored = cvy_store_find(&worker->store, request->name);
    if (worker->program->replica != 0 || !stored)
        return CVY_OK;
    for (size_t i = 0; i < g->reducibles.n; i++) {
        const struct cvy_reducible *r = &g->reducibles.data[i];
        if (r->kind != CVY_REDUCE_GRADIENT || strcmp(cvy_graph_value(g, r->target)->name, request->name) != 0)
            continue;
        struct cvy_stored at_gradient = *stored;
        at_gradient.place =
            (struct cvy_place){CVY_SPACE_SUM, worker->reducible_offset[i], at_gradient.place.n_bytes};
        return cvy_stored_read(worker, &at_gradient, request->out);
    }
    return CVY_FAIL(CVY_ERR_USAGE, "no parameter '%s' gets a gradient", request->name);
}

cvy_status cvy_session_gradient(struct cvy_session *session, const char *name, float *out) {
    struct request request = {.name = name, .out = out};
    if (session->split != CVY_SPLIT_BACKWARD)
        return CVY_FAIL(CVY_ERR_USAGE, "gradients are there between cvy_backward and cvy_update only");
    return cvy_team_run(&session->plan->team, gradient_task, &request);
}

static cvy_status replace_task(struct cvy_worker *worker, void *argument) {
    const struct request *request = argument;
    struct cvy_program *parsed = NULL;
    if (worker->rank != request->device)
        return CVY_OK;
    CVY_TRY(cvy_program_parse(request->text, worker->device, &parsed));
    /* the reductions name the old program's partials */
    for (size_t b = 0; b < worker->program->buckets.n; b++)
        worker->reductions[b].partials = parsed->partials.data;
    cvy_program_free(worker->program);
    worker->program = parsed;
    return cvy_execute_prepare(worker, false);
}

cvy_status cvy_session_replace_program(struct cvy_session *session, int device, const char *text) {
    struct request request = {.text = text, .device = device};
    return cvy_team_run(&session->plan->team, replace_task, &request);
}

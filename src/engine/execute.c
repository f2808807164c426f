/* execute: walks a schedule on the worker's device. Nothing here allocates: kernels, memory and the arrays of
   addresses are made by cvy_execute_prepare. A device with streams gets each instruction enqueued, between the events
   that it waits for and the one that it records, and is waited for at the end of the schedule. */
#include "engine/step.h"

#include <assert.h>
#include <math.h>
#include <string.h>

int64_t cvy_shard_first(int64_t n, int64_t n_shards, int64_t s) { return n * s / n_shards; }

int64_t cvy_shard_size(int64_t n, int64_t n_shards, int64_t s) {
    return cvy_shard_first(n, n_shards, s + 1) - cvy_shard_first(n, n_shards, s);
}

/* ---- addresses ------------------------------------------------------------------------------------- */

void *cvy_place_address(const struct cvy_worker *w, struct cvy_place place, int32_t slot, int32_t sum) {
    char *base = w->memory[place.space == CVY_SPACE_ROW ? CVY_SPACE_ROWS : place.space];
    if (place.space == CVY_SPACE_NONE)
        return NULL;
    assert(((place.space != CVY_SPACE_SLOT && place.space != CVY_SPACE_ROW) || slot >= 0) &&
           (place.space != CVY_SPACE_SUM || sum >= 0));
    if (place.space == CVY_SPACE_SLOT)
        base += (size_t)slot * w->program->slot_bytes;
    if (place.space == CVY_SPACE_ROW) /* there, every shard has the slot of its own */
        base += (size_t)(w->program->first_shard + slot) * place.n_bytes;
    if (place.space == CVY_SPACE_SUM)
        base += (size_t)sum * w->program->sum_bytes;
    return base + place.offset;
}

const struct cvy_operand *cvy_segment_port(const struct cvy_segment *segment, const char *port) {
    for (size_t i = 0; segment && i < segment->ports.n; i++) {
        if (strcmp(segment->ports.data[i].name, port) == 0)
            return &segment->operands.data[segment->ports.data[i].operand];
    }
    return NULL;
}

void *cvy_port_address(const struct cvy_worker *w, const struct cvy_segment *segment, const char *port,
                       int32_t slot, int32_t sum, const struct cvy_operand **operand) {
    *operand = cvy_segment_port(segment, port);
    return *operand ? cvy_place_address(w, (*operand)->place, slot, sum) : NULL;
}

float *cvy_step_bucket(const struct cvy_worker *w, int32_t bucket, int32_t sum) {
    struct cvy_place place = {CVY_SPACE_SUM, w->program->buckets.data[bucket].offset, 0};
    return cvy_place_address(w, place, 0, sum);
}

/* ---- instructions ---------------------------------------------------------------------------------- */

int64_t cvy_step_images(const struct cvy_step *s) {
    return cvy_shard_size(s->work->n, s->w->program->n_shards, s->i->shard);
}

static int64_t shard_first(const struct cvy_step *s) {
    return cvy_shard_first(s->work->n, s->w->program->n_shards, s->i->shard);
}

static struct cvy_segment *forward_segment(const struct cvy_step *s) {
    return cvy_program_segment(s->w->program, CVY_PHASE_FORWARD, s->work->is_training, 0, cvy_step_images(s));
}

cvy_status cvy_execute_op(struct cvy_worker *w, const struct cvy_segment *segment,
                          const struct cvy_prog_op *op, int32_t slot, int32_t sum) {
    for (int k = 0; k < op->n_in + op->n_out; k++) {
        int32_t index = k < op->n_in ? op->in[k] : op->out[k - op->n_in];
        const struct cvy_operand *operand = index < 0 ? NULL : &segment->operands.data[index];
        void *at =
            operand && !operand->spec.is_absent ? cvy_place_address(w, operand->place, slot, sum) : NULL;
        if (k < op->n_in)
            w->in[k] = at;
        else
            w->out[k - op->n_in] = at;
    }
    return op->kernel->impl->run(op->kernel, w->in, w->out, w->memory[CVY_SPACE_SCRATCH]);
}

static cvy_status run_segment(const struct cvy_step *s, const struct cvy_segment *segment) {
    struct cvy_worker *w = s->w;
    if (!segment)
        return CVY_FAIL(CVY_ERR_FAILED, "no segment for %s of shard %d: its size was not compiled",
                        cvy_instr_name(s->i->kind), s->i->shard);
    for (size_t k = 0; k < segment->ops.n; k++) {
        const struct cvy_prog_op *op = &segment->ops.data[k];
        if (!op->kernel)
            continue; /* a view */
        int64_t start = w->timeline.ring ? cvy_now_ns() : 0;
        CVY_TRY(cvy_execute_op(w, segment, op, s->i->slot, s->i->sum));
        if (w->timeline.ring) {
            struct cvy_event event = {op->op->name, op->name, op->phase,   s->i->shard,
                                      s->i->bucket, start,    cvy_now_ns()};
            cvy_timeline_add(&w->timeline, &event);
        }
    }
    return CVY_OK;
}

static cvy_status upload_port(const struct cvy_step *s, const struct cvy_segment *segment, const char *port,
                              const void *host, size_t n_bytes) {
    const struct cvy_operand *operand;
    void *at = cvy_port_address(s->w, segment, port, s->i->slot, 0, &operand);
    return at ? s->backend->upload(s->w->device, at, host, n_bytes) : CVY_OK;
}

static cvy_status do_load(const struct cvy_step *s) {
    const struct cvy_batch *batch = s->work->batch;
    const struct cvy_operand *operand;
    int64_t n = cvy_step_images(s), first = shard_first(s);
    struct cvy_segment *segment = forward_segment(s);
    if (n == 0)
        return CVY_OK;
    void *images = cvy_port_address(s->w, segment, "images", s->i->slot, 0, &operand);
    if (images) {
        struct cvy_ingest ingest = {batch, first, n};
        CVY_TRY(s->backend->ingest(s->w->device, &ingest, &operand->spec, images));
    }
    if (batch->labels)
        CVY_TRY(upload_port(s, segment, "labels", batch->labels + first, (size_t)n * sizeof *batch->labels));
    float divisor = (float)(s->work->is_training ? s->work->n_update : s->work->n);
    /* below 2^53, so that kernels which compute in doubles read it exactly */
    int64_t rng[3] = {(int64_t)(s->w->plan->options.seed & ((1ull << 53) - 1)), (int64_t)s->work->step,
                      s->work->first + first};
    float scale = (float)s->work->scale;
    CVY_TRY(upload_port(s, segment, "loss_scale", &scale, sizeof scale));
    CVY_TRY(upload_port(s, segment, "divisor", &divisor, sizeof divisor));
    return upload_port(s, segment, "rng", rng, sizeof rng);
}

static cvy_status do_zero(const struct cvy_step *s, int32_t bucket) {
    return s->backend->zero(s->w->device, cvy_step_bucket(s->w, bucket, s->i->sum),
                            s->w->program->buckets.data[bucket].n_floats * sizeof(float));
}

/* An empty shard takes part with zeros: the bucket's, in place of the part that would have made it. */
static cvy_status do_run(const struct cvy_step *s) {
    if (cvy_step_images(s) == 0)
        return s->i->phase == CVY_PHASE_FORWARD ? CVY_OK
                                                : do_zero(s, s->i->bucket < 0 ? s->i->part : s->i->bucket);
    return run_segment(s, cvy_program_segment(s->w->program, s->i->phase, s->work->is_training, s->i->part,
                                              cvy_step_images(s)));
}

static cvy_status do_add(const struct cvy_step *s) {
    float *sum = cvy_step_bucket(s->w, s->i->bucket, s->i->sum);
    return s->backend->add(s->w->device, sum, sum, cvy_step_bucket(s->w, s->i->bucket, s->i->from),
                           s->w->program->buckets.data[s->i->bucket].n_floats);
}

/* total += sum, and of an update's last batch sum += total. */
static cvy_status do_accumulate(const struct cvy_step *s) {
    const struct cvy_work *work = s->work;
    bool is_first = work->first == 0, is_last = work->first + work->n == work->n_update;
    float *sum = cvy_step_bucket(s->w, s->i->bucket, s->i->sum);
    size_t n = s->w->program->buckets.data[s->i->bucket].n_floats;
    struct cvy_place place = {CVY_SPACE_TOTAL, s->w->program->buckets.data[s->i->bucket].offset, 0};
    float *total = cvy_place_address(s->w, place, 0, 0);
    if (is_first && is_last)
        return CVY_OK;
    if (is_last)
        return s->backend->add(s->w->device, sum, total, sum, n);
    if (is_first) /* 0 + sum: a copy */
        CVY_TRY(s->backend->zero(s->w->device, total, n * sizeof *total));
    return s->backend->add(s->w->device, total, total, sum, n);
}

const struct cvy_segment *cvy_program_forward(const struct cvy_program *program) {
    for (size_t i = 0; i < program->segments.n; i++) {
        if (program->segments.data[i].phase == CVY_PHASE_FORWARD && program->segments.data[i].is_training)
            return &program->segments.data[i];
    }
    return NULL;
}

/* The last stage has the loss; the others learn it from there, so that none updates after a bad one. */
static cvy_status do_check(const struct cvy_step *s) {
    const struct cvy_program *p = s->w->program;
    const struct cvy_operand *operand;
    const void *at = cvy_port_address(s->w, cvy_program_forward(p), "loss", 0, 0, &operand);
    float loss = 0;
    if (at)
        CVY_TRY(s->backend->download(s->w->device, &loss, at, sizeof loss));
    if (p->n_stages > 1)
        CVY_TRY(cvy_talk_number(s, p->n_stages - 1, &loss, "the loss"));
    if (s->w->plan->skips) { /* all go on as they would; FINITE tells the updates */
        s->w->is_loss_bad = (s->w->is_loss_bad && s->work->first > 0) || !isfinite(loss);
        return CVY_OK;
    }
    if (!isfinite(loss))
        return CVY_FAIL(CVY_ERR_NAN, "step %lld: the loss is %s", (long long)s->work->step,
                        isnan(loss) ? "nan" : "infinite");
    return CVY_OK;
}

bool cvy_update_is_skipped(const struct cvy_step *s) { return s->w->is_skipping; }

static const struct cvy_segment *update_segment(const struct cvy_step *s) {
    return cvy_program_segment(s->w->program, CVY_PHASE_UPDATE, true, s->i->bucket, 0);
}

/* What changes from update to update; all buckets read it from one place. */
static cvy_status begin_update(const struct cvy_step *s) {
    float hyper[2] = {(float)s->work->lr, (float)((int64_t)s->work->step + 1 - s->work->n_skipped)};
    s->w->is_evaluation_stale = true;
    return upload_port(s, update_segment(s), "hyper", hyper, sizeof hyper);
}

static cvy_status do_update(const struct cvy_step *s) {
    if (cvy_update_is_skipped(s))
        return CVY_OK;
    CVY_TRY(begin_update(s));
    return run_segment(s, update_segment(s));
}

static cvy_status download_rows(const struct cvy_step *s, const char *port, void *host, size_t row_bytes) {
    const struct cvy_operand *operand;
    const void *at = cvy_port_address(s->w, forward_segment(s), port, s->i->slot, 0, &operand);
    if (!host || cvy_step_images(s) == 0)
        return CVY_OK;
    if (!at)
        return CVY_OK; /* another stage makes it */
    return s->backend->download(s->w->device, (char *)host + (size_t)shard_first(s) * row_bytes, at,
                                (size_t)cvy_step_images(s) * row_bytes);
}

static cvy_status do_result(const struct cvy_step *s) {
    const struct cvy_work *work = s->work;
    CVY_TRY(download_rows(s, "losses", work->losses, sizeof *work->losses));
    CVY_TRY(download_rows(s, "ranks", work->ranks, sizeof *work->ranks));
    return download_rows(s, "logits", work->logits, (size_t)work->n_classes * sizeof *work->logits);
}

static cvy_status do_broadcast(const struct cvy_step *s) {
    s->w->is_evaluation_stale = true;
    return cvy_talk(s);
}

/* Devices add their rows, having zeros in place of the others': so the sum is all rows, unchanged. */
static cvy_status do_exchange(const struct cvy_step *s) {
    CVY_TRY(cvy_rows_clear(s));
    return s->w->replicas ? cvy_talk(s) : CVY_OK;
}

static cvy_status do_refresh(const struct cvy_step *s) {
    bool is_training = s->i->part == 0;
    if (!is_training && !s->w->is_evaluation_stale)
        return CVY_OK;
    if (!is_training)
        s->w->is_evaluation_stale = false;
    const struct cvy_segment *segment =
        cvy_program_segment(s->w->program, CVY_PHASE_REFRESH, is_training, s->i->part, 0);
    return segment ? run_segment(s, segment) : CVY_OK;
}

static cvy_status (*const actions[CVY_N_INSTR])(const struct cvy_step *) = {
    [CVY_I_LOAD] = do_load,           [CVY_I_RUN] = do_run,         [CVY_I_ADD] = do_add,
    [CVY_I_SEND] = cvy_talk,          [CVY_I_RECV] = cvy_talk,      [CVY_I_REDUCE] = cvy_talk,
    [CVY_I_WAIT] = cvy_talk,          [CVY_I_CHECK] = do_check,     [CVY_I_FINITE] = cvy_step_finite,
    [CVY_I_CLIP] = cvy_step_clip,     [CVY_I_UPDATE] = do_update,   [CVY_I_RESULT] = do_result,
    [CVY_I_BROADCAST] = do_broadcast, [CVY_I_REFRESH] = do_refresh, [CVY_I_ACCUMULATE] = do_accumulate,
    [CVY_I_EXCHANGE] = do_exchange,
};

/* On a device with streams: between the waits of the first and the record of the last. */
static cvy_status begin(const struct cvy_step *s) {
    const struct cvy_streams *streams = s->backend->streams;
    CVY_TRY(streams->begin(s->w->device, s->i->stream, s->i, s->work->step));
    for (uint64_t left = s->i->wait_events; left; left &= left - 1)
        CVY_TRY(streams->wait(s->w->device, __builtin_ctzll(left)));
    return CVY_OK;
}

static cvy_status end(const struct cvy_step *s) {
    int32_t event = s->i->record_event;
    return event < 0 ? CVY_OK : s->backend->streams->record(s->w->device, event);
}

static cvy_status enqueue(const struct cvy_step *s) {
    CVY_TRY(begin(s));
    CVY_TRY(actions[s->i->kind](s));
    return end(s);
}

/* An instruction of a stretch: its update has begun. */
static cvy_status enqueue_steady(const struct cvy_step *s) {
    return s->i->kind == CVY_I_UPDATE ? run_segment(s, update_segment(s)) : actions[s->i->kind](s);
}

/* Instructions s.i[0] to s.i[n - 1], see repeat.c. */
static cvy_status enqueue_stretch(struct cvy_step s, size_t n) {
    const struct cvy_step first = s;
    CVY_TRY(begin(&first));
    for (size_t k = 0; k < n; k++) {
        s.i = &first.i[k];
        if (s.i->kind == CVY_I_UPDATE) {
            CVY_TRY(begin_update(&s));
            break;
        }
    }
    CVY_TRY(cvy_repeat(&first, n, enqueue_steady));
    s.i = &first.i[n - 1];
    return end(&s);
}

/* ---- schedules ------------------------------------------------------------------------------------------- */

static cvy_status perform(const struct cvy_step *s) {
    const struct cvy_instr *i = s->i;
    struct cvy_timeline *timeline = &s->w->timeline;
    int64_t start = timeline->ring ? cvy_now_ns() : 0;
    CVY_TRY(s->backend->streams ? enqueue(s) : actions[i->kind](s));
    if (timeline->ring && i->kind != CVY_I_RUN && i->kind != CVY_I_UPDATE) {
        struct cvy_event event = {
            cvy_instr_name(i->kind), NULL, i->phase, i->shard, i->bucket, start, cvy_now_ns()};
        cvy_timeline_add(timeline, &event);
    }
    return CVY_OK;
}

/* A loss that is not finite ends the step, but not the reductions that have been started: others wait in them, and the
   group stays usable. A device with streams has them enqueued, and nothing to wait for. */
static cvy_status complete_reductions(struct cvy_step step, const cvy_schedule *schedule, size_t from) {
    struct cvy_error error;
    cvy_error_save(&error, CVY_ERR_NAN);
    for (size_t k = from; k < schedule->n; k++) {
        step.i = &schedule->data[k];
        if (step.i->kind == CVY_I_WAIT)
            CVY_TRY(cvy_talk(&step));
    }
    return cvy_error_restore(&error);
}

static void fill(int64_t *at, size_t n, int64_t value) {
    for (size_t i = 0; i < n; i++)
        at[i] = value;
}

cvy_status cvy_execute(struct cvy_worker *worker, const cvy_schedule *schedule, struct cvy_work *work) {
    struct cvy_step step = {worker, work, worker->device->backend, NULL};
    int64_t *span = schedule == &worker->program->train ? cvy_spans_begin(&worker->spans) : NULL;
    if (span)
        *span++ = cvy_now_ns();
    for (size_t k = 0, n; k < schedule->n; k += n ? n : 1) {
        step.i = &schedule->data[k];
        n = cvy_repeat_length(&step, schedule->n - k);
        cvy_status status = n > 0 ? enqueue_stretch(step, n) : perform(&step);
        if (status == CVY_ERR_NAN)
            return complete_reductions(step, schedule, k + 1);
        CVY_TRY(status);
        if (span) /* of a stretch the first takes it all */
            fill(span + k, n ? n : 1, cvy_now_ns());
    }
    return cvy_device_synchronize(worker->device);
}

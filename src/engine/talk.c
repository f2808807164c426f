/* talk: instructions that talk with other devices, through the transport. On a device with streams they are host
   functions in the stream of communication; the transport reads and writes the device's memory when they run. Where
   devices reach each other, the device transport enqueues them. */
#include "engine/step.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- calls of the transport ---------------------------------------------------------------------------- */

/* The devices of this process that work while others wait: ", only cpu:2 is at work". Who waits is seldom waited for by
   the one that is late: it waits itself, in a chain. */
static void print_busy(const struct cvy_worker *me, struct cvy_text *out) {
    const char *names[3];
    int n = 0;
    for (int i = 0; i < me->team->n; i++) {
        const struct cvy_worker *w = &me->team->workers[i];
        if (w == me || atomic_load(&w->doing) != CVY_DOING_WORK)
            continue;
        if (n < 3)
            names[n] = w->device->name;
        n++;
    }
    if (n == 1)
        cvy_text_printf(out, ", only %s is at work", names[0]);
    else if (n > 1)
        cvy_text_printf(out, ", %s, %s%s%s are at work", names[0], names[1], n > 2 ? ", " : "",
                        n > 3   ? "and more"
                        : n > 2 ? names[2]
                                : "");
}

/* A device with streams does this in threads of its own: its waits are not counted. */
static void begin_call(const struct cvy_step *s) {
    if (!s->backend->streams)
        s->w->wait_start_ns = cvy_now_ns();
    atomic_store(&s->w->doing, CVY_DOING_WAIT);
}

/* Whoever reads of a lost device wants to know when that was, and which one is late. */
static cvy_status end_call(const struct cvy_step *s, cvy_status status) {
    struct cvy_text busy = {0};
    atomic_store(&s->w->doing, CVY_DOING_WORK);
    if (!s->backend->streams)
        s->w->waited_ns += cvy_now_ns() - s->w->wait_start_ns;
    if (status != CVY_ERR_LOST)
        return status;
    print_busy(s->w, &busy);
    cvy_fail_prefix(status, "step %llu%s: ", (unsigned long long)s->work->step, busy.n ? busy.data : "");
    cvy_text_free(&busy);
    return status;
}

/* The device transport, when this instruction goes by it. */
static const struct cvy_device_transport *on_devices(const struct cvy_step *s) {
    const struct cvy_device_transport *transport = s->w->team->on_devices;
    bool is_message = s->i->kind == CVY_I_SEND || s->i->kind == CVY_I_RECV;
    return transport && is_message && !transport->send ? NULL : transport;
}

/* Where the transport finds memory of this device. */
static void *host_address(const struct cvy_step *s, void *at) {
    const struct cvy_streams *streams = s->backend->streams;
    if (on_devices(s))
        return at;
    return streams && streams->host_address ? streams->host_address(s->w->device, at) : at;
}

/* ---- messages -------------------------------------------------------------------------------------- */

/* The segment whose ports name what is sent and received: of a backward pass its first part. */
static const struct cvy_segment *message_segment(const struct cvy_step *s) {
    const struct cvy_segment *found = NULL;
    for (size_t k = 0; k < s->w->program->segments.n; k++) {
        const struct cvy_segment *segment = &s->w->program->segments.data[k];
        if (segment->phase == s->i->phase && segment->is_training == s->work->is_training &&
            segment->shard_size == cvy_step_images(s) && (!found || segment->part < found->part))
            found = segment;
    }
    return found;
}

/* What goes to ("to") or comes from ("from") another stage with this segment's pass. Returns the number of pieces. */
static int message_pieces(const struct cvy_worker *w, const struct cvy_segment *segment,
                          const char *direction, int32_t peer, int32_t slot, struct cvy_piece *out) {
    char port[24];
    int n = 0;
    snprintf(port, sizeof port, "%s:%d", direction, peer);
    for (size_t k = 0; segment && k < segment->ports.n; k++) {
        const struct cvy_operand *operand = &segment->operands.data[segment->ports.data[k].operand];
        if (strcmp(segment->ports.data[k].name, port) == 0)
            out[n++] =
                (struct cvy_piece){cvy_place_address(w, operand->place, slot, 0), operand->place.n_bytes};
    }
    return n;
}

int cvy_link_number(const struct cvy_program *p, int32_t from_stage, int32_t to_stage) {
    return (p->replica * p->n_stages + from_stage) * p->n_stages + to_stage;
}

static const char *message_name(const struct cvy_step *s) {
    return s->i->phase == CVY_PHASE_FORWARD ? "activations" : "gradients of activations";
}

/* Into w->pieces. */
static int find_pieces(const struct cvy_step *s) {
    const char *direction = s->i->kind == CVY_I_SEND ? "to" : "from";
    if (cvy_step_images(s) == 0)
        return 0;
    return message_pieces(s->w, message_segment(s), direction, s->i->part, s->i->slot, s->w->pieces);
}

static cvy_status pass_message(const struct cvy_step *s) {
    const struct cvy_worker *w = s->w;
    const struct cvy_transport *transport = w->team->transport;
    const struct cvy_device_transport *direct = on_devices(s);
    bool is_send = s->i->kind == CVY_I_SEND;
    int32_t from = is_send ? w->program->stage : s->i->part, to = is_send ? s->i->part : w->program->stage;
    if (cvy_step_images(s) == 0)
        return CVY_OK;
    int n = find_pieces(s), link = cvy_link_number(w->program, from, to);
    for (int k = 0; k < n; k++)
        w->pieces[k].at = host_address(s, w->pieces[k].at);
    begin_call(s);
    cvy_status (*pass)(struct cvy_group *, int, int32_t, const struct cvy_piece *, int, const char *) =
        direct ? (is_send ? direct->send : direct->recv) : (is_send ? transport->send : transport->recv);
    return end_call(s, pass(w->group, link, s->i->shard, w->pieces, n, message_name(s)));
}

/* ---- reductions and broadcasts ----------------------------------------------------------------------- */

/* Describes the instruction's reduction, in the worker's table. */
static struct cvy_reduction *describe_reduction(const struct cvy_step *s, int *n_mine) {
    struct cvy_worker *w = s->w;
    struct cvy_reduction *r = &w->reductions[s->i->bucket];
    float **mine = w->mine + (size_t)s->i->bucket * w->program->partials.n;
    int n = 0;
    for (size_t k = 0; k < w->program->partials.n; k++) {
        const struct cvy_partial *p = &w->program->partials.data[k];
        if (p->device == w->program->replica) /* split calls: in the sum of its first shard */
            mine[n++] = cvy_step_bucket(w, s->i->bucket,
                                        s->work->is_split ? p->first - w->program->first_shard : p->sum);
    }
    r->mine = mine;
    r->result = s->i->sum < 0 ? NULL : cvy_step_bucket(w, s->i->bucket, s->i->sum);
    *n_mine = n;
    return r;
}

/* Posts this device's part. */
static cvy_status reduce(const struct cvy_step *s) {
    int n;
    struct cvy_reduction *r = describe_reduction(s, &n);
    float **mine = s->w->mine + (size_t)s->i->bucket * s->w->program->partials.n; /* what r->mine points to */
    for (int k = 0; k < n; k++)
        mine[k] = host_address(s, mine[k]);
    if (r->result)
        r->result = host_address(s, r->result);
    const struct cvy_device_transport *direct = on_devices(s);
    begin_call(s);
    return end_call(s, direct ? direct->reduce(s->w->replicas, s->i->bucket, r)
                              : s->w->team->transport->reduce_start(s->w->replicas, s->i->bucket, r));
}

/* Completes it. */
static cvy_status wait_reduction(const struct cvy_step *s) {
    begin_call(s);
    return end_call(s, s->w->team->transport->reduce_wait(s->w->replicas, s->i->bucket));
}

/* Adds the rows of all replicas, in a slot of its own, behind the buckets'. */
static cvy_status exchange(const struct cvy_step *s) {
    const struct cvy_transport *transport = s->w->team->transport;
    int slot = (int)s->w->program->buckets.n;
    struct cvy_reduction *r = &s->w->reductions[slot];
    char *rows;
    size_t n_bytes;
    CVY_TRY(cvy_rows_find(s, &rows, &n_bytes));
    /* others may still look there when this device has failed and left */
    float **mine = &s->w->mine[s->w->program->buckets.n * s->w->program->partials.n];
    *mine = host_address(s, rows);
    r->n = n_bytes / sizeof(float);
    r->mine = mine;
    r->result = *mine;
    begin_call(s);
    if (on_devices(s))
        return end_call(s, on_devices(s)->reduce(s->w->replicas, slot, r));
    cvy_status status = transport->reduce_start(s->w->replicas, slot, r);
    if (status == CVY_OK)
        status = transport->reduce_wait(s->w->replicas, slot);
    return end_call(s, status);
}

/* `part` 0: all that is stored; 1: parameters and buffers, which lie before the optimiser's states. */
static size_t broadcast_bytes(const struct cvy_step *s) {
    return s->i->part == 0 ? s->w->store.persist_bytes : s->w->store.weight_bytes;
}

static cvy_status broadcast(const struct cvy_step *s) {
    const struct cvy_device_transport *direct = on_devices(s);
    cvy_status (*pass)(struct cvy_group *, int, void *, size_t, const char *) =
        direct ? direct->broadcast : s->w->team->transport->broadcast;
    begin_call(s);
    return end_call(s, pass(s->w->replicas, 0, host_address(s, s->w->memory[CVY_SPACE_PERSIST]),
                            broadcast_bytes(s), "parameters"));
}

cvy_status cvy_talk_bytes(const struct cvy_step *s, int32_t stage, void *bytes, size_t n, const char *name) {
    const struct cvy_streams *streams = s->backend->streams;
    if (streams &&
        streams->progress) /* others may need what is enqueued here before they get to their loss */
        CVY_TRY(streams->progress(s->w->device));
    begin_call(s);
    return end_call(s, s->w->team->transport->broadcast(s->w->group, stage, bytes, n, name));
}

cvy_status cvy_talk_number(const struct cvy_step *s, int32_t stage, float *number, const char *name) {
    return cvy_talk_bytes(s, stage, number, sizeof *number, name);
}

/* ---- devices with streams ------------------------------------------------------------------------------ */

/* What the instruction reads and writes, into w->accesses. */
static int find_accesses(const struct cvy_step *s) {
    struct cvy_worker *w = s->w;
    int n = 0;
    if (s->i->kind == CVY_I_BROADCAST) {
        w->accesses[n++] = (struct cvy_access){w->memory[CVY_SPACE_PERSIST], broadcast_bytes(s),
                                               w->program->replica > 0, "parameters"};
    } else if (s->i->kind == CVY_I_EXCHANGE) {
        char *rows;
        size_t n_bytes;
        if (cvy_rows_find(s, &rows, &n_bytes) == CVY_OK) /* else the call fails */
            w->accesses[n++] = (struct cvy_access){rows, n_bytes, true, "rows"};
    } else if (s->i->kind == CVY_I_REDUCE) {
        const struct cvy_reduction *r = describe_reduction(s, &n);
        for (int k = 0; k < n; k++)
            w->accesses[k] = (struct cvy_access){r->mine[k], r->n * sizeof(float), false, "partial sum"};
        if (r->result)
            w->accesses[n++] = (struct cvy_access){r->result, r->n * sizeof(float), true, "sum"};
    } else {
        n = find_pieces(s);
        for (int k = 0; k < n; k++)
            w->accesses[k] = (struct cvy_access){w->pieces[k].at, w->pieces[k].n_bytes,
                                                 s->i->kind == CVY_I_RECV, message_name(s)};
    }
    return n;
}

static cvy_status (*const at_once[CVY_N_INSTR])(const struct cvy_step *) = {
    [CVY_I_SEND] = pass_message,   [CVY_I_RECV] = pass_message,   [CVY_I_REDUCE] = reduce,
    [CVY_I_WAIT] = wait_reduction, [CVY_I_BROADCAST] = broadcast, [CVY_I_EXCHANGE] = exchange,
};

/* A stream stands in a reduction until it is complete. */
static cvy_status talk_later(void *argument) {
    const struct cvy_step *s = argument;
    CVY_TRY(at_once[s->i->kind](s));
    return s->i->kind == CVY_I_REDUCE ? wait_reduction(s) : CVY_OK;
}

static cvy_status enqueue(const struct cvy_step *s) {
    struct cvy_host_call call = {.name = cvy_instr_name(s->i->kind),
                                 .run = talk_later,
                                 .argument = s,
                                 .argument_bytes = sizeof *s,
                                 .accesses = s->w->accesses,
                                 .n_accesses = find_accesses(s)};
    return s->backend->streams->call(s->w->device, &call);
}

cvy_status cvy_talk(const struct cvy_step *s) {
    if (!s->backend->streams)
        return at_once[s->i->kind](s);
    if (s->i->kind == CVY_I_WAIT)
        return CVY_OK; /* the event says when a reduction is complete */
    return on_devices(s) ? at_once[s->i->kind](s) : enqueue(s);
}

/* Queues of a device that are worked off when somebody waits: by the device's own thread, always the head of one of
   the streams whose waits are over, in an order that a seed decides (pick.h).

   No deadlock: a wait looks back to what was enqueued before it, and a host function may wait for other devices only
   in the stream of communication, where all devices have the same order (rt/stream.h). */
#include "backends/async/async.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 64 }; /* items of a queue */

/* ---- a queue ----------------------------------------------------------------------------------------- */

cvy_status async_queues_open(struct async_device *device) {
    for (int s = 0; s < CVY_N_STREAMS; s++) {
        struct async_queue *q = &device->queues[s];
        CVY_TRY(CVY_ALLOC(q->ring, FIRST_CAP));
        q->cap = FIRST_CAP;
    }
    return CVY_OK;
}

static cvy_status grow(struct async_queue *q) {
    size_t cap = 2 * q->cap;
    struct async_item **ring;
    CVY_TRY(CVY_ALLOC(ring, cap));
    for (uint64_t k = q->n_done; k < q->n_in; k++)
        ring[k % cap] = q->ring[k % q->cap];
    free(q->ring);
    q->ring = ring;
    q->cap = cap;
    return CVY_OK;
}

static cvy_status push(struct async_device *device, size_t payload_bytes, struct async_item **out) {
    struct async_queue *q = &device->queues[device->stream];
    void *item;
    if (q->n_in - q->n_done == q->cap)
        CVY_TRY(grow(q));
    CVY_TRY(cvy_alloc_items(1, sizeof(struct async_item) + payload_bytes, &item));
    *out = q->ring[q->n_in++ % q->cap] = item;
    return CVY_OK;
}

static struct async_item *head(const struct async_queue *q) {
    return q->n_done < q->n_in ? q->ring[q->n_done % q->cap] : NULL;
}

static void pop(struct async_queue *q) { free(q->ring[q->n_done++ % q->cap]); }

static void clear(struct async_device *device) {
    for (int s = 0; s < CVY_N_STREAMS; s++) {
        while (head(&device->queues[s]))
            pop(&device->queues[s]);
    }
}

void async_queues_free(struct async_device *device) {
    clear(device);
    for (int s = 0; s < CVY_N_STREAMS; s++)
        free(device->queues[s].ring);
}

cvy_status async_enqueue(struct async_device *device, const char *op, const struct cvy_access *accesses,
                         int n, cvy_status (*run)(struct async_device *, void *), size_t payload_bytes,
                         void **payload) {
    struct async_item *item;
    struct async_what what = device->what;
    what.op = op;
    what.stream = device->stream;
    CVY_TRY(async_order_access(&device->order, &what, accesses, n));
    CVY_TRY(push(device, payload_bytes, &item));
    item->what = what;
    item->run = run;
    *payload = item->payload;
    return CVY_OK;
}

/* ---- working them off -------------------------------------------------------------------------------- */

/* Can the stream's head run? A wait that is over is taken off on the way. */
static bool is_ready(struct async_device *device, int s) {
    struct async_queue *q = &device->queues[s];
    const struct async_item *item;
    while ((item = head(q)) && !item->run) {
        if (device->queues[item->wait_stream].n_done < item->wait_until)
            return false;
        pop(q);
    }
    return item != NULL;
}

/* A stream that can go on; -1: none. */
static int pick(struct async_device *device) {
    bool ready[CVY_N_STREAMS];
    for (int round = 0; round < CVY_N_STREAMS; round++) { /* a wait taken off one stream may free another */
        for (int s = 0; s < CVY_N_STREAMS; s++)
            ready[s] = is_ready(device, s);
    }
    return async_pick(&device->picker, ready, CVY_N_STREAMS);
}

static bool is_over(const struct async_device *device, int stream) {
    for (int s = 0; s < CVY_N_STREAMS; s++) {
        if ((stream < 0 || stream == s) && head(&device->queues[s]))
            return false;
    }
    return true;
}

static cvy_status run_items(struct async_device *device, int stream) {
    while (!is_over(device, stream)) {
        int s = pick(device);
        if (s < 0 && is_over(device, stream))
            break; /* only waits were left */
        assert(s >= 0);
        struct async_item *item = head(&device->queues[s]);
        CVY_TRY(async_faults_meet(&device->faults, device->base.name, &item->what));
        CVY_TRY(item->run(device, item->payload));
        pop(&device->queues[s]);
    }
    return CVY_OK;
}

cvy_status async_run(struct async_device *device, int stream) {
    CVY_TRY(async_memory_open(device));
    cvy_status status = run_items(device, stream);
    if (status != CVY_OK) {
        clear(device);
        return status; /* other devices may still be at work on this one's memory: it stays open */
    }
    return async_memory_shut(device);
}

/* ---- the interface ----------------------------------------------------------------------------------- */

static cvy_status begin(struct cvy_device *device, int stream, const struct cvy_instr *what, uint64_t step) {
    struct async_device *me = async_device(device);
    if (stream < 0 || stream >= CVY_N_STREAMS)
        return CVY_FAIL(CVY_ERR_FAILED, "%s has no stream %d", device->name, stream);
    me->stream = stream;
    me->what = (struct async_what){.has_instr = what != NULL, .step = step};
    if (what)
        me->what.instr = *what;
    return CVY_OK;
}

static cvy_status record(struct cvy_device *device, int event) {
    struct async_device *me = async_device(device);
    async_order_record(&me->order, me->stream, event);
    me->events[event].stream = me->stream;
    me->events[event].until = me->queues[me->stream].n_in;
    return CVY_OK;
}

static cvy_status wait(struct cvy_device *device, int event) {
    struct async_device *me = async_device(device);
    struct async_item *item;
    CVY_TRY(async_order_wait(&me->order, me->stream, event));
    if (me->events[event].stream == me->stream)
        return CVY_OK;
    CVY_TRY(push(me, 0, &item));
    item->wait_stream = me->events[event].stream;
    item->wait_until = me->events[event].until;
    return CVY_OK;
}

struct host_call {
    cvy_status (*run)(void *argument);
    _Alignas(16) unsigned char argument[];
};

static cvy_status run_host_call(struct async_device *device, void *payload) {
    struct host_call *call = payload;
    (void)device;
    return call->run(call->argument);
}

static cvy_status call(struct cvy_device *device, const struct cvy_host_call *what) {
    struct host_call *copy;
    CVY_TRY(async_enqueue(async_device(device), what->name, what->accesses, what->n_accesses, run_host_call,
                          sizeof *copy + what->argument_bytes, (void **)&copy));
    copy->run = what->run;
    memcpy(copy->argument, what->argument, what->argument_bytes);
    return CVY_OK;
}

static cvy_status progress(struct cvy_device *device) { return async_run(async_device(device), -1); }

static cvy_status synchronize(struct cvy_device *device) {
    struct async_device *me = async_device(device);
    CVY_TRY(async_run(me, -1));
    async_order_settle(&me->order);
    return begin(device, 0, NULL, 0);
}

static void abandon(struct cvy_device *device) {
    struct async_device *me = async_device(device);
    clear(me);
    async_order_settle(&me->order);
    (void)begin(device, 0, NULL, 0);
}

static void name_memory(struct cvy_device *device, const void *at, size_t n_bytes, const char *name) {
    async_order_name(&async_device(device)->order, at, n_bytes, name);
}

const struct cvy_streams async_streams = {
    .begin = begin,
    .record = record,
    .wait = wait,
    .call = call,
    .progress = progress,
    .synchronize = synchronize,
    .abandon = abandon,
    .name_memory = name_memory,
};

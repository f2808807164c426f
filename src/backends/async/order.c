/* Vector clocks and the memory's record of accesses. See order.h. */
#include "backends/async/order.h"

#include "rt/program_text.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory ------------------------------------------------------------------------------------------ */

void async_order_open(struct async_order *order, const char *device, int n_streams) {
    *order = (struct async_order){.device = device, .n_streams = n_streams, .epoch = 1};
}

void async_order_free(struct async_order *order) {
    for (size_t i = 0; i < order->arenas.n; i++)
        free(order->arenas.data[i].granules);
    cvy_vec_free(&order->arenas);
    cvy_vec_free(&order->parts);
    cvy_vec_free(&order->log);
}

static size_t stride(const struct async_order *order) { return ASYNC_READ + (size_t)order->n_streams; }

cvy_status async_order_add(struct async_order *order, void *memory, size_t n_bytes) {
    struct async_arena arena = {.memory = memory, .n_bytes = n_bytes};
    CVY_TRY(CVY_ALLOC(arena.granules, (n_bytes / CVY_ALIGN + 1) * stride(order)));
    cvy_status status = cvy_vec_push(&order->arenas, arena);
    if (status != CVY_OK)
        free(arena.granules);
    return status;
}

static bool is_within(const char *at, const char *begin, size_t n_bytes) {
    return at >= begin && (size_t)(at - begin) < n_bytes;
}

void async_order_remove(struct async_order *order, void *memory) {
    for (size_t i = 0; i < order->arenas.n; i++) {
        struct async_arena *arena = &order->arenas.data[i];
        if (arena->memory != memory)
            continue;
        size_t n = 0;
        for (size_t k = 0; k < order->parts.n; k++) {
            if (!is_within(order->parts.data[k].at, arena->memory, arena->n_bytes))
                order->parts.data[n++] = order->parts.data[k];
        }
        order->parts.n = n;
        free(arena->granules);
        *arena = order->arenas.data[--order->arenas.n];
        return;
    }
}

void async_order_name(struct async_order *order, const void *at, size_t n_bytes, const char *name) {
    struct async_part part = {.at = at, .n_bytes = n_bytes};
    strncpy(part.name, name, sizeof part.name - 1);
    (void)cvy_vec_push(&order->parts, part); /* then messages say less */
}

static struct async_arena *find_arena(const struct async_order *order, const char *at, size_t n_bytes) {
    for (size_t i = 0; i < order->arenas.n; i++) {
        struct async_arena *arena = &order->arenas.data[i];
        if (is_within(at, arena->memory, arena->n_bytes) &&
            n_bytes <= arena->n_bytes - (size_t)(at - arena->memory))
            return arena;
    }
    return NULL;
}

/* ---- messages ---------------------------------------------------------------------------------------- */

void async_what_print(const struct async_what *what, struct cvy_text *out) {
    struct cvy_instr instr = what->instr;
    struct cvy_text line = {0};
    instr.wait_events = 0;
    instr.record_event = -1;
    instr.stream = 0;
    cvy_instr_print(&instr, &line);
    cvy_text_printf(out, "%s", what->op);
    if (what->has_instr && line.n > 3) /* without its indent and newline */
        cvy_text_printf(out, " of \"%.*s\"", (int)line.n - 3, line.data + 2);
    cvy_text_free(&line);
}

static void print_place(const struct async_order *order, const char *at, struct cvy_text *out) {
    for (size_t i = 0; i < order->parts.n; i++) {
        const struct async_part *part = &order->parts.data[i];
        if (is_within(at, part->at, part->n_bytes)) {
            cvy_text_printf(out, "%s, byte %zu", part->name, (size_t)(at - part->at));
            return;
        }
    }
    const struct async_arena *arena = find_arena(order, at, 0);
    cvy_text_printf(out, "byte %zu", arena ? (size_t)(at - arena->memory) : 0);
}

/* With its stream. */
static void print_access(const struct async_what *what, struct cvy_text *out) {
    async_what_print(what, out);
    if (what->stream_name)
        cvy_text_printf(out, " (%s)", what->stream_name);
    else
        cvy_text_printf(out, " (stream %d)", what->stream);
}

/* Two accesses that nothing orders. `verb`: what the earlier one does. */
static cvy_status fail_race(const struct async_order *order, const struct async_what *what,
                            const struct cvy_access *access, uint32_t other, const char *verb,
                            const char *at) {
    struct cvy_text me = {0}, you = {0}, place = {0};
    const struct async_what *earlier = &order->log.data[other - 1];
    if (what->has_instr || what->step > 0)
        cvy_text_printf(&me, "step %llu: ", (unsigned long long)what->step);
    cvy_text_printf(&me, "no event orders ");
    print_access(what, &me);
    print_access(earlier, &you);
    print_place(order, at, &place);
    cvy_status status = CVY_FAIL(CVY_ERR_FAILED, "%s: %s, which %s its %s, after %s, which %s %s",
                                 order->device, me.data, access->is_write ? "writes" : "reads",
                                 access->name ? access->name : "memory", you.data, verb, place.data);
    cvy_text_free(&me);
    cvy_text_free(&you);
    cvy_text_free(&place);
    return status;
}

/* ---- accesses ---------------------------------------------------------------------------------------- */

static void join(struct async_clock *into, const struct async_clock *from) {
    for (int t = 0; t < ASYNC_ORDER_STREAMS; t++)
        into->at[t] = from->at[t] > into->at[t] ? from->at[t] : into->at[t];
}

/* Nobody has read it since it was written; written: 0, not in this epoch. */
static void restart(const struct async_order *order, uint32_t *g, uint32_t written) {
    g[ASYNC_EPOCH] = order->epoch;
    g[ASYNC_WRITTEN] = written;
    memset(&g[ASYNC_READ], 0, (size_t)order->n_streams * sizeof *g);
}

/* Access number n, whose predecessors are in `clock`, to one granule. */
static cvy_status touch(struct async_order *order, uint32_t *g, const struct async_what *what, uint32_t n,
                        const struct async_clock *clock, const struct cvy_access *access, const char *at) {
    if (g[ASYNC_EPOCH] != order->epoch)
        restart(order, g, 0);
    const uint32_t written = g[ASYNC_WRITTEN], *read = &g[ASYNC_READ];
    if (written && written != n && written > clock->at[order->log.data[written - 1].stream])
        return fail_race(order, what, access, written, "writes", at);
    for (int t = 0; access->is_write && t < order->n_streams; t++) {
        if (read[t] != n && read[t] > clock->at[t])
            return fail_race(order, what, access, read[t], "reads", at);
    }
    if (access->is_write)
        restart(order, g, n);
    else
        g[ASYNC_READ + what->stream] = n;
    return CVY_OK;
}

static cvy_status touch_range(struct async_order *order, const struct async_what *what, uint32_t n,
                              const struct async_clock *clock, const struct cvy_access *access) {
    const char *at = access->at;
    struct async_arena *arena = find_arena(order, at, access->n_bytes);
    if (!arena) {
        struct cvy_text me = {0};
        async_what_print(what, &me);
        cvy_status status =
            CVY_FAIL(CVY_ERR_FAILED, "%s: %s: its %s (%zu bytes) does not lie in the device's memory",
                     order->device, me.data, access->name ? access->name : "memory", access->n_bytes);
        cvy_text_free(&me);
        return status;
    }
    size_t first = (size_t)(at - arena->memory) / CVY_ALIGN;
    size_t last = ((size_t)(at - arena->memory) + access->n_bytes - 1) / CVY_ALIGN;
    for (size_t g = first; g <= last; g++)
        CVY_TRY(touch(order, &arena->granules[g * stride(order)], what, n, clock, access,
                      arena->memory + g * CVY_ALIGN));
    return CVY_OK;
}

cvy_status async_order_access(struct async_order *order, const struct async_what *what,
                              const struct cvy_access *accesses, int n) {
    struct async_clock *stream = &order->streams[what->stream];
    join(stream, &order->host);
    CVY_TRY(cvy_vec_push(&order->log, *what));
    uint32_t number = (uint32_t)order->log.n;
    for (int k = 0; k < n; k++) {
        if (accesses[k].n_bytes > 0)
            CVY_TRY(touch_range(order, what, number, stream, &accesses[k]));
    }
    stream->at[what->stream] = number;
    return CVY_OK;
}

/* ---- what orders them -------------------------------------------------------------------------------- */

void async_order_mark(const struct async_order *order, int stream, struct async_mark *out) {
    *out = (struct async_mark){order->epoch, order->streams[stream]};
}

void async_order_follow(struct async_order *order, int after, const struct async_mark *mark) {
    if (mark->epoch == order->epoch)
        join(&order->streams[after], &mark->clock);
}

void async_order_record(struct async_order *order, int stream, int event) {
    async_order_mark(order, stream, &order->events[event]);
}

cvy_status async_order_wait(struct async_order *order, int stream, int event) {
    if (order->events[event].epoch != order->epoch)
        return CVY_FAIL(CVY_ERR_FAILED, "%s: stream %d waits for event e%d, which was not recorded",
                        order->device, stream, event);
    async_order_follow(order, stream, &order->events[event]);
    return CVY_OK;
}

void async_order_host(struct async_order *order, int stream) { join(&order->host, &order->streams[stream]); }

void async_order_one_host(const struct async_order *order, int stream, struct async_mark *host) {
    if (host->epoch != order->epoch)
        *host = (struct async_mark){.epoch = order->epoch};
    join(&host->clock, &order->streams[stream]);
}

void async_order_one_host_mark(const struct async_order *order, const struct async_mark *mark,
                               struct async_mark *host) {
    if (mark->epoch != order->epoch)
        return; /* everything since was waited for */
    if (host->epoch != order->epoch)
        *host = (struct async_mark){.epoch = order->epoch};
    join(&host->clock, &mark->clock);
}

void async_order_settle(struct async_order *order) {
    order->epoch++;
    order->host = (struct async_clock){{0}};
    memset(order->streams, 0, sizeof order->streams);
    order->log.n = 0;
}

/* The asynchronous test backend: a device that does later what it is told now, as a GPU does, and finds what is then
   wrong. It wraps the CPU backend, whose bits it has, and is slow. What passes here is ready for GPUs.

   - Streams are queues that are worked off when somebody waits, in an order that the events allow and the environment
     variable CVY_ASYNC_SEED (a number, default 0) decides: queue.c.
   - Every access to memory must be ordered with those that it conflicts with, by streams, events or the host's
     waits, whatever the order in which things happened to run: order.h.
   - Memory is the device's own. The host cannot touch it but while the device works, when transports do: anything else
     that reads or writes a device's address crashes at once.
   - Faults are ordered by CVY_ASYNC_FAIL and CVY_ASYNC_STALL: faults.h.

   The variables are read when a device is opened, and stand in no run.json. */
#include "backends/async/async.h"

#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char INNER[] = "cpu";

extern const struct cvy_backend cvy_backend_async;

/* ---- opening ----------------------------------------------------------------------------------------- */

static int count(void) { return INT_MAX; }

static void close_device(struct cvy_device *device) {
    struct async_device *me = async_device(device);
    if (!me)
        return;
    async_queues_free(me);
    async_order_free(&me->order);
    async_kernels_close(me);
    if (me->inner)
        me->inner->backend->close(me->inner);
    free(me);
}

static cvy_status read_seed(uint64_t *out) {
    const char *text = getenv("CVY_ASYNC_SEED");
    int64_t seed = 0;
    if (text && *text && (!cvy_parse_i64(text, &seed) || seed < 0))
        return CVY_FAIL(CVY_ERR_USAGE, "CVY_ASYNC_SEED='%s': give a number from 0", text);
    *out = (uint64_t)seed;
    return CVY_OK;
}

static cvy_status open_device(const struct cvy_device_spec *spec, struct cvy_device **out) {
    const struct cvy_backend *inner = cvy_backend_find(INNER);
    struct async_device *me;
    cvy_status status;
    uint64_t seed;
    if (!inner)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "async devices wrap the %s backend, which this build lacks",
                        INNER);
    CVY_TRY(read_seed(&seed));
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.backend = &cvy_backend_async;
    snprintf(me->base.name, sizeof me->base.name, "async:%d", spec->index);
    async_order_open(&me->order, me->base.name, CVY_N_STREAMS);
    cvy_rng_init(&me->picker.rng, seed, CVY_RNG_TEST, (uint64_t)spec->index, 0);
    CVY_TRY_OUT(async_queues_open(me));
    CVY_TRY_OUT(async_faults_read(spec->index, spec->timeout_s, &me->faults));
    CVY_TRY_OUT(inner->open(spec, &me->inner));
    me->base.spec = me->inner->spec; /* T is settled there */
    CVY_TRY_OUT(async_kernels_open(me));
    *out = &me->base;
    return CVY_OK;
out:
    close_device(&me->base);
    return status;
}

static cvy_status enter(struct cvy_device *device) {
    struct cvy_device *inner = async_device(device)->inner;
    return inner->backend->enter(inner);
}

static void kind(struct cvy_text *out) { cvy_backend_find(INNER)->kind(out); }

static void describe(const struct cvy_device *device, struct cvy_text *out) {
    const struct cvy_device *inner = ((const struct async_device *)device)->inner;
    cvy_text_printf(out, "%s: %d streams over ", device->name, CVY_N_STREAMS);
    inner->backend->describe(inner, out);
}

/* ---- memory ------------------------------------------------------------------------------------------ */

static size_t mapped_bytes(size_t n_bytes) {
    return cvy_align_up(n_bytes + !n_bytes, (size_t)sysconf(_SC_PAGESIZE));
}

static cvy_status protect(struct async_device *device, int protection) {
    for (size_t i = 0; i < device->order.arenas.n; i++) {
        const struct async_arena *arena = &device->order.arenas.data[i];
        if (mprotect(arena->memory, mapped_bytes(arena->n_bytes), protection) != 0)
            return CVY_FAIL(CVY_ERR_FAILED, "%s: cannot protect memory: %s", device->base.name,
                            strerror(errno));
    }
    return CVY_OK;
}

cvy_status async_memory_open(struct async_device *device) { return protect(device, PROT_READ | PROT_WRITE); }
cvy_status async_memory_shut(struct async_device *device) { return protect(device, PROT_NONE); }

static cvy_status alloc(struct cvy_device *device, size_t n_bytes, void **out, double *touch_s) {
    struct async_device *me = async_device(device);
    void *memory =
        mmap(NULL, mapped_bytes(n_bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return CVY_FAIL(CVY_ERR_MEMORY, "%s: no %.1f MB of memory; use a smaller batch or more shards",
                        device->name, (double)n_bytes / 1e6);
    cvy_status status = async_order_add(&me->order, memory, n_bytes);
    if (status != CVY_OK) {
        munmap(memory, mapped_bytes(n_bytes));
        return status;
    }
    *touch_s = 0;
    *out = memory;
    return CVY_OK;
}

/* As cudaFree: waits for what uses it. */
static void release(struct cvy_device *device, void *memory, size_t n_bytes) {
    struct async_device *me = async_device(device);
    if (!memory)
        return;
    if (async_streams.synchronize(device) != CVY_OK)
        async_streams.abandon(device); /* then it does not matter any more */
    async_order_remove(&me->order, memory);
    munmap(memory, mapped_bytes(n_bytes));
}

/* ---- plain bytes ------------------------------------------------------------------------------------- */

struct transfer { /* upload, download, zero, add */
    void *to;
    const void *a, *b;
    size_t n;
    _Alignas(16) unsigned char bytes[]; /* of an upload */
};

static cvy_status run_upload(struct async_device *me, void *payload) {
    const struct transfer *t = payload;
    return me->inner->backend->upload(me->inner, t->to, t->bytes, t->n);
}

static cvy_status upload(struct cvy_device *device, void *to, const void *host, size_t n_bytes) {
    const struct cvy_access access = {to, n_bytes, true, "target"};
    struct transfer *t;
    CVY_TRY(async_enqueue(async_device(device), "upload", &access, 1, run_upload, sizeof *t + n_bytes,
                          (void **)&t));
    t->to = to;
    t->n = n_bytes;
    memcpy(t->bytes, host, n_bytes);
    return CVY_OK;
}

static cvy_status run_download(struct async_device *me, void *payload) {
    const struct transfer *t = payload;
    return me->inner->backend->download(me->inner, t->to, t->a, t->n);
}

static cvy_status download(struct cvy_device *device, void *host, const void *from, size_t n_bytes) {
    struct async_device *me = async_device(device);
    const struct cvy_access access = {(void *)from, n_bytes, false, "source"};
    struct transfer *t;
    CVY_TRY(async_enqueue(me, "download", &access, 1, run_download, sizeof *t, (void **)&t));
    t->to = host;
    t->a = from;
    t->n = n_bytes;
    CVY_TRY(async_run(me, me->stream));
    async_order_host(&me->order, me->stream);
    return CVY_OK;
}

static cvy_status run_zero(struct async_device *me, void *payload) {
    const struct transfer *t = payload;
    return me->inner->backend->zero(me->inner, t->to, t->n);
}

static cvy_status zero(struct cvy_device *device, void *at, size_t n_bytes) {
    const struct cvy_access access = {at, n_bytes, true, "target"};
    struct transfer *t;
    CVY_TRY(async_enqueue(async_device(device), "zero", &access, 1, run_zero, sizeof *t, (void **)&t));
    t->to = at;
    t->n = n_bytes;
    return CVY_OK;
}

static cvy_status run_add(struct async_device *me, void *payload) {
    const struct transfer *t = payload;
    return me->inner->backend->add(me->inner, t->to, t->a, t->b, t->n);
}

static cvy_status add(struct cvy_device *device, float *sum, const float *a, const float *b, size_t n) {
    const struct cvy_access accesses[] = {{(void *)a, n * sizeof *a, false, "lower shards"},
                                          {(void *)b, n * sizeof *b, false, "higher shards"},
                                          {sum, n * sizeof *sum, true, "sum"}};
    struct transfer *t;
    CVY_TRY(async_enqueue(async_device(device), "add", accesses, 3, run_add, sizeof *t, (void **)&t));
    *t = (struct transfer){.to = sum, .a = a, .b = b, .n = n};
    return CVY_OK;
}

static cvy_status run_not_finite(struct async_device *me, void *payload) {
    const struct transfer *t = payload;
    return me->inner->backend->not_finite(me->inner, t->a, t->n, t->to);
}

static cvy_status not_finite(struct cvy_device *device, const float *at, size_t n, float *flag) {
    const struct cvy_access accesses[] = {{(void *)at, n * sizeof *at, false, "gradients"},
                                          {flag, sizeof *flag, true, "flag"}};
    struct transfer *t;
    CVY_TRY(async_enqueue(async_device(device), "not_finite", accesses, 2, run_not_finite, sizeof *t,
                          (void **)&t));
    *t = (struct transfer){.to = flag, .a = at, .n = n};
    return CVY_OK;
}

struct image_transfer {
    struct cvy_ingest what;
    struct cvy_operand_spec spec;
    void *to;
};

static cvy_status run_ingest(struct async_device *me, void *payload) {
    const struct image_transfer *t = payload;
    return me->inner->backend->ingest(me->inner, &t->what, &t->spec, t->to);
}

static cvy_status ingest(struct cvy_device *device, const struct cvy_ingest *what,
                         const struct cvy_operand_spec *to_spec, void *to) {
    struct async_device *me = async_device(device);
    const size_t n_bytes = me->inner->backend->layout_bytes(to_spec->layout, &to_spec->desc);
    const struct cvy_access access = {to, n_bytes, true, "images"};
    struct image_transfer *t;
    CVY_TRY(cvy_ingest_check(device, what, to_spec));
    CVY_TRY(async_enqueue(me, "ingest", &access, 1, run_ingest, sizeof *t, (void **)&t));
    *t = (struct image_transfer){*what, *to_spec, to};
    return CVY_OK;
}

static const char *amp_refusal(cvy_dtype low) { return cvy_backend_find(INNER)->amp_refusal(low); }

/* ---- layouts: the inner backend's ---------------------------------------------------------------------- */

static size_t layout_bytes(const struct cvy_layout *layout, const struct cvy_desc *desc) {
    return cvy_backend_find(INNER)->layout_bytes(layout, desc);
}

static void layout_print(const struct cvy_layout *layout, struct cvy_text *out) {
    cvy_backend_find(INNER)->layout_print(layout, out);
}

static bool layout_find(struct cvy_device *device, const char *name, const struct cvy_layout **out) {
    struct cvy_device *inner = async_device(device)->inner;
    return inner->backend->layout_find(inner, name, out);
}

/* ---- the table ----------------------------------------------------------------------------------------- */

const struct cvy_backend cvy_backend_async = {
    .name = "async",
    .help = "for tests: does later what it is told now, in random orders, and watches every access",
    .is_host_memory = false,
    .amp_refusal = amp_refusal,
    .count = count,
    .open = open_device,
    .close = close_device,
    .enter = enter,
    .kind = kind,
    .describe = describe,
    .alloc = alloc,
    .release = release,
    .upload = upload,
    .download = download,
    .zero = zero,
    .add = add,
    .not_finite = not_finite,
    .ingest = ingest,
    .layout_bytes = layout_bytes,
    .layout_print = layout_print,
    .layout_find = layout_find,
    .kernels_of = INNER,
    .select = async_select,
    .streams = &async_streams,
};

/* The inner backend's kernels, wrapped: made by it, run later. */
#include "backends/async/async.h"

#include "base/mem.h"
#include "rt/fallback.h"

#include <stdlib.h>
#include <string.h>

struct wrapper {
    struct cvy_kernel_impl base;
    const struct cvy_kernel_impl *inner;
};

struct async_kernel_table {
    size_t n;
    struct wrapper wrappers[]; /* of all that the inner backend has, and of the fallback */
};

struct kernel {
    struct cvy_kernel base;
    struct async_device *device;
    struct cvy_kernel *inner;
    const struct cvy_op *op;
    int n_in, n_out;
    struct cvy_access accesses[]; /* inputs, outputs, scratch; `at` is set by each run */
};

struct run { /* one run of a kernel */
    struct kernel *kernel;
    void *scratch;
    void *operands[]; /* inputs, outputs */
};

/* ---- preparing --------------------------------------------------------------------------------------- */

static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    struct cvy_device *inner = async_device(device)->inner;
    return cvy_kernel_select(inner, call, NULL)->choose(inner, call);
}

/* What an operator does to each operand; an update also writes to the inputs in whose place its outputs are. */
static void describe(struct kernel *k, const struct cvy_call *call, size_t scratch_bytes) {
    const struct cvy_backend *inner = k->device->inner->backend;
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        bool is_out = i >= call->n_in;
        int o = i - call->n_in;
        const struct cvy_operand_spec *spec = is_out ? &call->out[o] : &call->in[i];
        k->accesses[i].n_bytes = spec->is_absent ? 0 : inner->layout_bytes(spec->layout, &spec->desc);
        k->accesses[i].is_write = is_out;
        k->accesses[i].name = is_out ? call->op->out_names[o % call->op->n_out] : cvy_op_in_name(call->op, i);
    }
    for (int o = 0; call->op->flags & CVY_OP_UPDATE && o < call->n_out; o++) {
        int aliased = cvy_op_aliased_input(call->op, o);
        if (aliased >= 0)
            k->accesses[aliased].is_write = true;
    }
    k->accesses[call->n_in + call->n_out] =
        (struct cvy_access){.n_bytes = scratch_bytes, .is_write = true, .name = "scratch"};
}

static void release(struct cvy_kernel *kernel) {
    struct kernel *k = (struct kernel *)kernel;
    if (k && k->inner && k->inner->impl->release)
        k->inner->impl->release(k->inner);
    free(k);
}

static const struct cvy_kernel_impl *wrap(const struct async_device *device,
                                          const struct cvy_kernel_impl *inner) {
    const struct async_kernel_table *table = device->kernels;
    for (size_t i = 0; i < table->n; i++) {
        if (table->wrappers[i].inner == inner)
            return &table->wrappers[i].base;
    }
    return NULL;
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    struct async_device *me = async_device(device);
    const struct cvy_kernel_impl *inner = cvy_kernel_select(me->inner, call, NULL);
    size_t n = (size_t)(call->n_in + call->n_out) + 1;
    void *memory;
    CVY_TRY(cvy_alloc_items(1, sizeof(struct kernel) + n * sizeof(struct cvy_access), &memory));
    struct kernel *k = memory;
    k->base.impl = wrap(me, inner);
    k->device = me;
    k->op = call->op;
    k->n_in = call->n_in;
    k->n_out = call->n_out;
    *scratch_bytes = 0;
    cvy_status status = inner->prepare(me->inner, call, &k->inner, scratch_bytes);
    if (status != CVY_OK) {
        release(&k->base);
        return status;
    }
    describe(k, call, *scratch_bytes);
    *out = &k->base;
    return CVY_OK;
}

/* ---- running ----------------------------------------------------------------------------------------- */

static cvy_status run_later(struct async_device *device, void *payload) {
    struct run *r = payload;
    struct kernel *k = r->kernel;
    (void)device;
    return k->inner->impl->run(k->inner, r->operands, r->operands + k->n_in, r->scratch);
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct kernel *k = (struct kernel *)kernel;
    int n = k->n_in + k->n_out;
    struct run *r;
    for (int i = 0; i < n; i++)
        k->accesses[i].at = i < k->n_in ? in[i] : out[i - k->n_in];
    k->accesses[n].at = scratch;
    CVY_TRY(async_enqueue(k->device, k->op->name, k->accesses, n + 1, run_later,
                          sizeof *r + (size_t)n * sizeof *r->operands, (void **)&r));
    r->kernel = k;
    r->scratch = scratch;
    for (int i = 0; i < n; i++)
        r->operands[i] = k->accesses[i].at;
    return CVY_OK;
}

/* ---- the table --------------------------------------------------------------------------------------- */

static struct wrapper make_wrapper(const struct cvy_kernel_impl *inner) {
    return (struct wrapper){.base = {.op = inner->op,
                                     .choose = inner->choose ? choose : NULL,
                                     .prepare = prepare,
                                     .run = run,
                                     .release = release,
                                     .not_in_place = inner->not_in_place},
                            .inner = inner};
}

cvy_status async_kernels_open(struct async_device *device) {
    const struct cvy_kernel_impl *const *inner = cvy_backend_kernels(device->inner->backend);
    size_t n = 0;
    void *memory;
    while (inner[n])
        n++;
    CVY_TRY(cvy_alloc_items(1, sizeof *device->kernels + (n + 1) * sizeof(struct wrapper), &memory));
    device->kernels = memory;
    device->kernels->n = n + 1;
    for (size_t i = 0; i < n; i++)
        device->kernels->wrappers[i] = make_wrapper(inner[i]);
    device->kernels->wrappers[n] = make_wrapper(&cvy_fallback_kernel);
    return CVY_OK;
}

void async_kernels_close(struct async_device *device) { free(device->kernels); }

const struct cvy_kernel_impl *async_select(const struct cvy_device *device, const struct cvy_call *call,
                                           bool *is_fallback) {
    const struct async_device *me = (const struct async_device *)device;
    const struct cvy_kernel_impl *inner = cvy_kernel_select(me->inner, call, is_fallback);
    return inner ? wrap(me, inner) : NULL;
}

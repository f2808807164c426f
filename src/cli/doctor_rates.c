/* doctor: what one device computes (a convolution and a matrix product as networks have them) and moves. */
#include "cli/doctor_trial.h"

#include "base/thread.h"
#include "ops/cases.h"

#include <string.h>

/* A convolution's floating-point operations are those of its formula, also where Winograd's algorithm needs fewer. */
static const struct work {
    const char *op;
    struct cvy_case shapes;
    size_t offset; /* of the rate */
} works[] = {
    {"conv2d",
     {.attrs = "kernel=3x3 padding=1x1", .inputs = "f32[8,64,56,56] f32[64,64,3,3] -"},
     offsetof(struct trial_member, convolutions)},
    {"linear",
     {.attrs = "", .inputs = "f32[1024,1024] f32[1024,1024] -"},
     offsetof(struct trial_member, products)},
};

static const double LEAST_S =
    0.05; /* of each window, of which the best counts: what else runs here disturbs some */
enum { N_WINDOWS = 4 };

struct call {
    struct cvy_device *device;
    struct cvy_case_call shapes;
    struct cvy_operand_spec in[CVY_CASE_MAX], out[CVY_CASE_MAX];
    void *memory[2 * CVY_CASE_MAX + 1]; /* inputs, outputs, workspace */
    size_t n_bytes[2 * CVY_CASE_MAX + 1];
    struct cvy_kernel *kernel;
};
enum { OUT = CVY_CASE_MAX, WORKSPACE = 2 * CVY_CASE_MAX };

static cvy_status place(struct call *c, int slot, size_t n_bytes) {
    double touch_s;
    c->n_bytes[slot] = n_bytes;
    return c->device->backend->alloc(c->device, n_bytes, &c->memory[slot], &touch_s);
}

/* Layouts and algorithm are those that the engine would choose. */
static cvy_status prepare(struct call *c, const struct cvy_op *op) {
    const struct cvy_backend *backend = c->device->backend;
    struct cvy_call call = {.op = op,
                            .attrs = c->shapes.attrs,
                            .n_in = c->shapes.n_in,
                            .n_out = c->shapes.n_out,
                            .in = c->in,
                            .out = c->out,
                            .rule_batch = c->shapes.in[0].shape.dim[0],
                            .is_training = true};
    size_t n_workspace = 0;
    for (int i = 0; i < call.n_in; i++)
        c->in[i] = (struct cvy_operand_spec){.desc = c->shapes.in[i], .is_absent = c->shapes.is_absent[i]};
    for (int o = 0; o < call.n_out; o++)
        c->out[o] = (struct cvy_operand_spec){.desc = c->shapes.out[o]};
    const struct cvy_kernel_impl *impl = cvy_kernel_select(c->device, &call, NULL);
    if (!impl)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "%s: %s has no kernel", op->name, c->device->name);
    if (impl->choose)
        CVY_TRY(impl->choose(c->device, &call));
    for (int i = 0; i < call.n_in; i++)
        if (!c->in[i].is_absent)
            CVY_TRY(place(c, i, backend->layout_bytes(c->in[i].layout, &c->in[i].desc)));
    for (int o = 0; o < call.n_out; o++)
        CVY_TRY(place(c, OUT + o, backend->layout_bytes(c->out[o].layout, &c->out[o].desc)));
    CVY_TRY(impl->prepare(c->device, &call, &c->kernel, &n_workspace));
    return place(c, WORKSPACE, n_workspace);
}

static cvy_status run_kernel(void *context) {
    struct call *c = context;
    return c->kernel->impl->run(c->kernel, c->memory, c->memory + OUT, c->memory[WORKSPACE]);
}

static cvy_status time_window(struct cvy_device *device, cvy_status (*run)(void *context), void *context,
                              int n, double *seconds) {
    int64_t start = cvy_now_ns();
    for (int i = 0; i < n; i++)
        CVY_TRY(run(context));
    CVY_TRY(cvy_device_synchronize(device));
    *seconds = (double)(cvy_now_ns() - start) * 1e-9;
    return CVY_OK;
}

/* How long one run takes: as many as take LEAST_S are timed together. */
static cvy_status time_runs(struct cvy_device *device, cvy_status (*run)(void *context), void *context,
                            double *seconds) {
    double all = 0;
    int n = 1;
    CVY_TRY(time_window(device, run, context, n, &all)); /* the first does not count */
    CVY_TRY(time_window(device, run, context, n, &all));
    for (; all < LEAST_S && n < 1 << 20; n *= 2)
        CVY_TRY(time_window(device, run, context, 2 * n, &all));
    *seconds = all / n;
    for (int window = 1; window < N_WINDOWS; window++) {
        CVY_TRY(time_window(device, run, context, n, &all));
        *seconds = all / n < *seconds ? all / n : *seconds;
    }
    return CVY_OK;
}

static cvy_status measure(struct trial_member *me, const struct work *work) {
    const struct cvy_op *op = cvy_op_find(work->op);
    struct call c = {.device = me->device};
    struct cvy_cost cost = {0};
    double seconds = 0;
    cvy_status status;
    CVY_TRY_OUT(cvy_case_open(op, &work->shapes, &c.shapes));
    struct cvy_infer infer = {
        .op = op, .attrs = c.shapes.attrs, .n_in = c.shapes.n_in, .n_out = c.shapes.n_out, .in = c.shapes.in};
    memcpy(infer.out, c.shapes.out, (size_t)c.shapes.n_out * sizeof *infer.out);
    cvy_op_cost(&infer, &cost);
    CVY_TRY_OUT(prepare(&c, op));
    CVY_TRY_OUT(time_runs(me->device, run_kernel, &c, &seconds));
    *(double *)((char *)me + work->offset) = cost.flops / seconds * 1e-9;
out:
    if (c.kernel)
        c.kernel->impl->release(c.kernel);
    for (int s = 0; s <= WORKSPACE; s++)
        if (c.memory[s])
            me->device->backend->release(me->device, c.memory[s], c.n_bytes[s]);
    cvy_case_close(&c.shapes);
    return status;
}

/* ---- memory ---------------------------------------------------------------------------------------- */

enum { N_FLOATS = 16 << 20 }; /* more than caches hold */

struct addition {
    struct cvy_device *device;
    float *a, *b;
};

static cvy_status add(void *context) {
    struct addition *x = context;
    return x->device->backend->add(x->device, x->a, x->a, x->b, N_FLOATS);
}

static cvy_status measure_memory(struct trial_member *me) {
    const struct cvy_backend *backend = me->device->backend;
    const size_t n_bytes = N_FLOATS * sizeof(float);
    void *memory = NULL;
    double seconds = 0, touch_s;
    CVY_TRY(backend->alloc(me->device, 2 * n_bytes, &memory, &touch_s));
    struct addition x = {me->device, memory, (float *)memory + N_FLOATS};
    cvy_status status = time_runs(me->device, add, &x, &seconds);
    if (status == CVY_OK)
        me->memory = 3 * (double)n_bytes / seconds * 1e-9;
    backend->release(me->device, memory, 2 * n_bytes);
    return status;
}

cvy_status doctor_rates(struct trial_member *me) {
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        CVY_TRY(measure(me, &works[i]));
    return measure_memory(me);
}

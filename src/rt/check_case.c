/* One case is run as the engine would run it: choose, reorder what lies otherwise, prepare, run; then the results
   are reordered to plain and held against the reference in double precision. */
#include "rt/check_case.h"
#include "base/mem.h"
#include "ops/cases.h"
#include "rt/fallback.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct check { /* one case on one device */
    struct cvy_device *device;
    const struct cvy_op *op;
    const struct cvy_case *test;
    struct cvy_case_call shapes;
    struct cvy_operand_spec in[CVY_CASE_MAX], out[CVY_CASE_MAX];
    void *memory[2 * CVY_CASE_MAX + 1]; /* on the device: inputs, outputs, workspace */
    size_t n_bytes[2 * CVY_CASE_MAX + 1];
    double *expected[CVY_CASE_MAX], *drawn[CVY_CASE_MAX];
    struct cvy_check_result *result;
    struct XXH3_state_s *hash;
};
enum { OUT = CVY_CASE_MAX, WORK = 2 * CVY_CASE_MAX }; /* positions in memory[] */

/* ---- memory on the device ----------------------------------------------------------------------- */

static cvy_status place(struct check *c, int slot, size_t n_bytes) {
    double touch_s;
    c->n_bytes[slot] = n_bytes;
    return c->device->backend->alloc(c->device, n_bytes, &c->memory[slot], &touch_s);
}

static size_t bytes_of(const struct check *c, const struct cvy_operand_spec *spec) {
    return c->device->backend->layout_bytes(spec->layout, &spec->desc);
}

/* Runs a kernel whose call is complete. */
static cvy_status run_call(struct cvy_device *device, const struct cvy_kernel_impl *impl,
                           const struct cvy_call *call, void *const *in, void *const *out) {
    cvy_status status;
    struct cvy_kernel *kernel = NULL;
    void *scratch = NULL;
    size_t scratch_bytes = 0;
    double touch_s;
    CVY_TRY(impl->prepare(device, call, &kernel, &scratch_bytes));
    CVY_TRY_OUT(device->backend->alloc(device, scratch_bytes, &scratch, &touch_s));
    CVY_TRY_OUT(kernel->impl->run(kernel, in, out, scratch));
    CVY_TRY_OUT(cvy_device_synchronize(device));
out:
    kernel->impl->release(kernel);
    device->backend->release(device, scratch, scratch_bytes);
    return status;
}

/* Copies a tensor into another layout. */
static cvy_status reorder(struct cvy_device *device, const struct cvy_operand_spec *from, void *from_memory,
                          const struct cvy_operand_spec *to, void *to_memory) {
    struct cvy_operand_spec in = *from, out = *to;
    struct cvy_call call = {.op = cvy_op_find("reorder"), .n_in = 1, .n_out = 1, .in = &in, .out = &out};
    if (!call.op)
        return CVY_FAIL(CVY_ERR_FAILED, "there is no operator reorder");
    const struct cvy_kernel_impl *impl = cvy_kernel_select(device, &call, NULL);
    if (!impl)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "%s has no reorder", device->name);
    return run_call(device, impl, &call, &from_memory, &to_memory);
}

/* Plain host values to slot `slot` in its layout, or (is_upload false) back. */
static cvy_status move(struct check *c, int slot, const struct cvy_operand_spec *spec, void *host,
                       bool is_upload) {
    cvy_status status;
    const struct cvy_backend *b = c->device->backend;
    struct cvy_operand_spec plain = *spec;
    size_t n_bytes = cvy_desc_bytes(&spec->desc);
    void *staging = NULL;
    double touch_s;
    plain.layout = NULL;
    CVY_TRY(b->alloc(c->device, n_bytes, &staging, &touch_s));
    if (is_upload) {
        CVY_TRY_OUT(b->upload(c->device, staging, host, n_bytes));
        CVY_TRY_OUT(reorder(c->device, &plain, staging, spec, c->memory[slot]));
    } else {
        CVY_TRY_OUT(reorder(c->device, spec, c->memory[slot], &plain, staging));
        CVY_TRY_OUT(b->download(c->device, host, staging, n_bytes));
    }
out:
    b->release(c->device, staging, n_bytes);
    return status;
}

static cvy_status upload(struct check *c, int slot, const struct cvy_operand_spec *spec, void *host) {
    return spec->layout
               ? move(c, slot, spec, host, true)
               : c->device->backend->upload(c->device, c->memory[slot], host, cvy_desc_bytes(&spec->desc));
}

static cvy_status download(struct check *c, int slot, const struct cvy_operand_spec *spec, void *host) {
    return spec->layout
               ? move(c, slot, spec, host, false)
               : c->device->backend->download(c->device, host, c->memory[slot], cvy_desc_bytes(&spec->desc));
}

/* ---- one case ----------------------------------------------------------------------------------- */

/* Values of a narrow type are those that it has. */
static cvy_status round_values(const struct cvy_desc *desc, double *values) {
    int64_t n = cvy_shape_count(&desc->shape);
    void *narrow;
    if (desc->dtype == CVY_F32)
        return CVY_OK;
    CVY_TRY(cvy_alloc_items(1, cvy_desc_bytes(desc), &narrow));
    cvy_narrow(desc->dtype, values, n, narrow);
    cvy_widen(desc->dtype, narrow, n, values);
    free(narrow);
    return CVY_OK;
}

/* Draws the inputs and computes the expected outputs. */
static cvy_status expect(struct check *c, uint64_t seed) {
    for (int i = 0; i < c->shapes.n_in; i++) {
        if (c->shapes.is_absent[i])
            continue;
        CVY_TRY(CVY_ALLOC(c->drawn[i], (size_t)cvy_shape_count(&c->shapes.in[i].shape)));
        cvy_case_fill(c->test, i, &c->shapes.in[i], seed, c->drawn[i]);
        CVY_TRY(round_values(&c->shapes.in[i], c->drawn[i]));
    }
    for (int o = 0; o < c->shapes.n_out; o++)
        CVY_TRY(CVY_ALLOC(c->expected[o], (size_t)cvy_shape_count(&c->shapes.out[o].shape)));
    c->op->reference(&(struct cvy_reference){
        .attrs = c->shapes.attrs,
        .n_in = c->shapes.n_in,
        .n_out = c->shapes.n_out,
        .in_desc = c->shapes.in,
        .out_desc = c->shapes.out,
        .in = (const double *const *)c->drawn,
        .out = c->expected,
    });
    return CVY_OK;
}

static struct cvy_call make_call(struct check *c, const struct cvy_layout *layout) {
    for (int i = 0; i < c->shapes.n_in; i++) {
        const struct cvy_desc *desc = &c->shapes.in[i];
        bool is_image = desc->shape.n == 4 && desc->dtype != CVY_I64;
        c->in[i] = (struct cvy_operand_spec){
            .desc = *desc, .layout = is_image ? layout : NULL, .is_absent = c->shapes.is_absent[i]};
    }
    for (int o = 0; o < c->shapes.n_out; o++)
        c->out[o] = (struct cvy_operand_spec){.desc = c->shapes.out[o],
                                              .is_private = o < 32 && c->op->private_out >> o & 1};
    return (struct cvy_call){
        .op = c->op,
        .attrs = c->shapes.attrs,
        .n_in = c->shapes.n_in,
        .n_out = c->shapes.n_out,
        .in = c->in,
        .out = c->out,
        .rule_batch = c->shapes.n_in > 0 ? c->shapes.in[0].shape.dim[0] : 1,
        .is_training = true,
    };
}

/* Outputs that must lie in an input's memory do; the others are filled with NaN (every byte 0xFF). */
static cvy_status place_outputs(struct check *c, void **in, void **out) {
    for (int o = 0; o < c->shapes.n_out; o++) {
        int aliased = c->op->flags & CVY_OP_UPDATE ? cvy_op_aliased_input(c->op, o) : -1;
        if (aliased >= 0) {
            out[o] = in[aliased];
            continue;
        }
        char *poison;
        size_t n_bytes = bytes_of(c, &c->out[o]);
        CVY_TRY(place(c, OUT + o, n_bytes));
        CVY_TRY(CVY_ALLOC(poison, n_bytes));
        memset(poison, 0xFF, n_bytes);
        cvy_status status = c->device->backend->upload(c->device, c->memory[OUT + o], poison, n_bytes);
        free(poison);
        CVY_TRY(status);
        out[o] = c->memory[OUT + o];
    }
    return CVY_OK;
}

static cvy_status place_inputs(struct check *c, void **in) {
    for (int i = 0; i < c->shapes.n_in; i++) {
        void *host;
        if (c->shapes.is_absent[i])
            continue;
        CVY_TRY(place(c, i, bytes_of(c, &c->in[i])));
        CVY_TRY(cvy_alloc_items(1, cvy_desc_bytes(&c->in[i].desc), &host));
        cvy_narrow(c->in[i].desc.dtype, c->drawn[i], cvy_shape_count(&c->in[i].desc.shape), host);
        cvy_status status = upload(c, i, &c->in[i], host);
        free(host);
        CVY_TRY(status);
        in[i] = c->memory[i];
    }
    return CVY_OK;
}

/* ||got - expected|| / ||expected||; over zeros, ||got||. */
static double relative_error(const double *got, const double *expected, int64_t n) {
    double error = 0, size = 0;
    for (int64_t k = 0; k < n; k++) {
        error += (got[k] - expected[k]) * (got[k] - expected[k]);
        size += expected[k] * expected[k];
    }
    return size > 0 ? sqrt(error / size) : sqrt(error);
}

static cvy_status compare(struct check *c) {
    for (int o = 0; o < c->shapes.n_out; o++) {
        int64_t n = cvy_shape_count(&c->out[o].desc.shape);
        int aliased = c->op->flags & CVY_OP_UPDATE ? cvy_op_aliased_input(c->op, o) : -1;
        void *host = NULL;
        double *got = NULL, error;
        if (c->out[o].is_private)
            continue;
        cvy_status status = cvy_alloc_items(1, cvy_desc_bytes(&c->out[o].desc), &host);
        if (status == CVY_OK)
            status = CVY_ALLOC(got, (size_t)n);
        if (status == CVY_OK)
            status = download(c, aliased >= 0 ? aliased : OUT + o, &c->out[o], host);
        if (status == CVY_OK) {
            cvy_widen(c->out[o].desc.dtype, host, n, got);
            error = relative_error(got, c->expected[o], n);
            if (!(error <= c->result->error)) /* also when it is NaN */
                c->result->error = error;
            XXH3_64bits_update(c->hash, host, cvy_desc_bytes(&c->out[o].desc));
        }
        free(host);
        free(got);
        CVY_TRY(status);
    }
    c->result->has_passed = c->result->error <= c->result->tolerance;
    return CVY_OK;
}

/* The case's description, with the inputs of narrow type that the check asks for. */
static cvy_status open_case(struct check *c) {
    struct cvy_case_call *call = &c->shapes;
    CVY_TRY(cvy_case_open(c->op, c->test, call));
    for (int i = 0; i < call->n_in && i < 32; i++) {
        if (c->op->narrow_in >> i & 1 && !call->is_absent[i])
            call->in[i].dtype = c->result->narrow;
    }
    return cvy_op_infer(c->op, call->attrs, call->n_in, call->in, call->out);
}

static cvy_status run_case(struct check *c, uint64_t seed, const struct cvy_layout *layout) {
    void *in[CVY_CASE_MAX] = {NULL}, *out[CVY_CASE_MAX] = {NULL};
    CVY_TRY(open_case(c));
    CVY_TRY(expect(c, seed));
    struct cvy_call call = make_call(c, layout);
    const struct cvy_kernel_impl *impl = cvy_kernel_select(c->device, &call, &c->result->is_fallback);
    if (!impl)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "%s: %s has no kernel", c->op->name, c->device->name);
    if (impl->choose) {
        CVY_TRY(impl->choose(c->device, &call));
    } else {
        for (int i = 0; i < call.n_in; i++)
            call.in[i].layout = NULL;
    }
    CVY_TRY(place_inputs(c, in));
    CVY_TRY(place_outputs(c, in, out));
    CVY_TRY(run_call(c->device, impl, &call, in, out));
    return compare(c);
}

static void close_case(struct check *c) {
    for (int s = 0; s <= WORK; s++) {
        if (c->memory[s])
            c->device->backend->release(c->device, c->memory[s], c->n_bytes[s]);
    }
    for (int k = 0; k < CVY_CASE_MAX; k++) {
        free(c->drawn[k]);
        free(c->expected[k]);
    }
    cvy_case_close(&c->shapes);
}

cvy_status cvy_check_case(struct cvy_device *device, const struct cvy_case *test, uint64_t seed,
                          const struct cvy_layout *layout, struct XXH3_state_s *hash,
                          struct cvy_check_result *result) {
    struct check *c;
    CVY_TRY(CVY_ALLOC(c, 1));
    c->device = device;
    c->op = result->op;
    c->test = test;
    c->result = result;
    c->hash = hash;
    cvy_status status = run_case(c, seed, layout);
    close_case(c);
    free(c);
    return status;
}

/* The operator's own reference kernel, dressed as a backend kernel: every input is widened to doubles in the
   scratch workspace, the oracle runs there, and the outputs are rounded to their types.
   Invariants: all layouts are plain; `run` allocates nothing; outputs may lie in place of inputs, because the
   reference only ever sees the doubles; outputs that nobody reads are computed and dropped. */
#include "rt/fallback.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fallback {
    struct cvy_kernel base;
    const struct cvy_op *op;
    void *attrs;
    int n_in, n_out;
    struct cvy_desc *descs; /* inputs, then outputs */
    double **values;        /* inputs, then outputs; set at each run; NULL: absent input */
    bool *is_absent;
};

/* Rounds x to a format of `precision` significant bits whose smallest normal number is 2^min_exponent
   (to nearest even, gradual underflow); x beyond the largest finite number becomes infinite. */
static double round_to_format(double x, int precision, int min_exponent, double largest) {
    if (x == 0 || !isfinite(x))
        return x;
    int exponent = ilogb(x);
    double quantum = ldexp(1, (exponent > min_exponent ? exponent : min_exponent) - precision + 1);
    double rounded = rint(x / quantum) * quantum;
    return fabs(rounded) > largest ? copysign(INFINITY, x) : rounded;
}

static uint16_t bf16_from(double x) {
    float exact = (float)round_to_format(x, 8, -126, 0x1.FEp127);
    uint32_t bits;
    memcpy(&bits, &exact, sizeof bits);
    return (uint16_t)(bits >> 16 | (isnan(x) ? 0x40 : 0));
}

static double bf16_to(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint16_t f16_from(double x) {
    double rounded = round_to_format(x, 11, -14, 65504);
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    double size = fabs(rounded);
    if (isnan(x))
        return sign | 0x7E00;
    if (isinf(rounded))
        return sign | 0x7C00;
    if (size < 0x1p-14)
        return sign | (uint16_t)(size * 0x1p24);
    int exponent = ilogb(size);
    return sign | (uint16_t)((exponent + 15) << 10 | ((int)ldexp(size, 10 - exponent) & 0x3FF));
}

static double f16_to(uint16_t half) {
    int exponent = half >> 10 & 0x1F, mantissa = half & 0x3FF;
    double size = exponent == 0    ? mantissa * 0x1p-24
                  : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                   : ldexp(1024 + mantissa, exponent - 25);
    return half & 0x8000 ? -size : size;
}

#define WIDEN(type, convert)                      \
    for (int64_t i = 0; i < n; i++)               \
        to[i] = convert(((const type *)from)[i]); \
    break
#define NARROW(type, convert)               \
    for (int64_t i = 0; i < n; i++)         \
        ((type *)to)[i] = convert(from[i]); \
    break

void cvy_widen(cvy_dtype dtype, const void *from, int64_t n, double *to) {
    switch (dtype) {
    case CVY_F32:
        WIDEN(float, (double));
    case CVY_F64:
        WIDEN(double, (double));
    case CVY_BF16:
        WIDEN(uint16_t, bf16_to);
    case CVY_F16:
        WIDEN(uint16_t, f16_to);
    case CVY_I32:
        WIDEN(int32_t, (double));
    case CVY_I64:
        WIDEN(int64_t, (double));
    case CVY_U8:
        WIDEN(uint8_t, (double));
    }
}

void cvy_narrow(cvy_dtype dtype, const double *from, int64_t n, void *to) {
    switch (dtype) {
    case CVY_F32:
        NARROW(float, (float));
    case CVY_F64:
        NARROW(double, (double));
    case CVY_BF16:
        NARROW(uint16_t, bf16_from);
    case CVY_F16:
        NARROW(uint16_t, f16_from);
    case CVY_I32:
        NARROW(int32_t, (int32_t));
    case CVY_I64:
        NARROW(int64_t, (int64_t));
    case CVY_U8:
        NARROW(uint8_t, (uint8_t));
    }
}

static size_t doubles_bytes(const struct cvy_desc *desc) {
    return cvy_align_up((size_t)cvy_shape_count(&desc->shape) * sizeof(double), CVY_ALIGN);
}

static void release(struct cvy_kernel *kernel) {
    struct fallback *me = (struct fallback *)kernel;
    if (!me)
        return;
    free(me->attrs);
    free(me->descs);
    free(me->values);
    free(me->is_absent);
    free(me);
}

static const struct cvy_operand_spec *operand(const struct cvy_call *call, int i) {
    return i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    cvy_status status;
    struct fallback *me;
    size_t n = (size_t)(call->n_in + call->n_out), bytes = 0;
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = &cvy_fallback_kernel;
    me->op = call->op;
    me->n_in = call->n_in;
    me->n_out = call->n_out;
    CVY_TRY_OUT(cvy_alloc_items(1, call->op->attrs_size, &me->attrs));
    CVY_TRY_OUT(CVY_ALLOC(me->descs, n));
    CVY_TRY_OUT(CVY_ALLOC(me->values, n));
    CVY_TRY_OUT(CVY_ALLOC(me->is_absent, n));
    if (call->attrs && call->op->attrs_size)
        memcpy(me->attrs, call->attrs, call->op->attrs_size);
    for (size_t i = 0; i < n; i++) {
        const struct cvy_operand_spec *spec = operand(call, (int)i);
        if (spec->layout && !spec->is_absent) {
            status =
                CVY_FAIL(CVY_ERR_FAILED, "%s on %s: the reference kernel needs plain layouts; reorder first",
                         call->op->name, device->name);
            goto out;
        }
        me->descs[i] = spec->desc;
        me->is_absent[i] = spec->is_absent;
        if (!spec->is_absent || (int)i >= call->n_in)
            bytes += doubles_bytes(&spec->desc);
    }
    *scratch_bytes = bytes;
    *out = &me->base;
    return CVY_OK;
out:
    release(&me->base);
    return status;
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct fallback *me = (struct fallback *)kernel;
    char *at = scratch;
    for (int i = 0; i < me->n_in + me->n_out; i++) {
        bool is_input = i < me->n_in;
        me->values[i] = NULL;
        if (is_input && me->is_absent[i])
            continue;
        me->values[i] = (double *)at;
        at += doubles_bytes(&me->descs[i]);
        if (is_input)
            cvy_widen(me->descs[i].dtype, in[i], cvy_shape_count(&me->descs[i].shape), me->values[i]);
    }
    double **results = me->values + me->n_in;
    me->op->reference(&(struct cvy_reference){
        .attrs = me->attrs,
        .n_in = me->n_in,
        .n_out = me->n_out,
        .in_desc = me->descs,
        .out_desc = me->descs + me->n_in,
        .in = (const double *const *)me->values,
        .out = results,
    });
    for (int o = 0; o < me->n_out; o++) {
        const struct cvy_desc *desc = &me->descs[me->n_in + o];
        if (!me->is_absent[me->n_in + o])
            cvy_narrow(desc->dtype, results[o], cvy_shape_count(&desc->shape), out[o]);
    }
    return CVY_OK;
}

const struct cvy_kernel_impl cvy_fallback_kernel = {
    .op = "reference",
    .prepare = prepare,
    .run = run,
    .release = release,
};

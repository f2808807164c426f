/* Conformance cases: parses their text, infers their outputs, draws their inputs. */
#include "ops/cases.h"

#include "base/mem.h"
#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

/* One word of the list of inputs: "f32[2,3]", or "-" for absent. */
static cvy_status parse_input(const char *word, size_t length, struct cvy_case_call *out) {
    char text[96];
    if (out->n_in == CVY_CASE_MAX || length >= sizeof text)
        return CVY_FAIL(CVY_ERR_USAGE, "a case has at most %d inputs", CVY_CASE_MAX);
    memcpy(text, word, length);
    text[length] = '\0';
    CVY_TRY(cvy_desc_parse(text, &out->in[out->n_in]));
    out->is_absent[out->n_in] = cvy_desc_is_absent(&out->in[out->n_in]);
    out->n_in++;
    return CVY_OK;
}

static cvy_status parse_inputs(const char *text, struct cvy_case_call *out) {
    while (*text) {
        size_t length = strcspn(text, " ");
        if (length)
            CVY_TRY(parse_input(text, length, out));
        text += length + (text[length] == ' ');
    }
    return CVY_OK;
}

static cvy_status infer_outputs(const struct cvy_op *op, struct cvy_case_call *out) {
    out->n_out = cvy_op_groups(op, out->n_in) * op->n_out;
    if (out->n_out < 0 || out->n_out > CVY_CASE_MAX)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "a case of %s with %d inputs: it has not so many, or more than %d outputs", op->name,
                        out->n_in, CVY_CASE_MAX);
    return cvy_op_infer(op, out->attrs, out->n_in, out->in, out->out);
}

cvy_status cvy_case_open(const struct cvy_op *op, const struct cvy_case *c, struct cvy_case_call *out) {
    cvy_status status = CVY_OK;
    *out = (struct cvy_case_call){0};
    CVY_TRY(cvy_alloc_items(1, op->attrs_size, &out->attrs));
    cvy_attrs_default(op, out->attrs);
    CVY_TRY_OUT(cvy_attrs_parse(op, c->attrs, out->attrs));
    CVY_TRY_OUT(parse_inputs(c->inputs, out));
    CVY_TRY_OUT(infer_outputs(op, out));
out:
    if (status != CVY_OK)
        cvy_case_close(out);
    return status;
}

void cvy_case_close(struct cvy_case_call *call) {
    free(call->attrs);
    call->attrs = NULL;
}

static bool is_float(cvy_dtype dtype) {
    return dtype == CVY_F32 || dtype == CVY_F64 || dtype == CVY_BF16 || dtype == CVY_F16;
}

static void round_to_f32(double *values, int64_t n) {
    for (int64_t k = 0; k < n; k++)
        values[k] = (double)(float)values[k];
}

void cvy_case_fill(const struct cvy_case *c, int i, const struct cvy_desc *desc, uint64_t seed,
                   double *values) {
    if (c->fill)
        c->fill(i, desc, seed, values);
    else if (is_float(desc->dtype))
        cvy_fill_normal(i, desc, seed, values);
    else
        memset(values, 0, (size_t)cvy_shape_count(&desc->shape) * sizeof *values);
    if (is_float(desc->dtype) && desc->dtype != CVY_F64)
        round_to_f32(values, cvy_shape_count(&desc->shape));
}

static struct cvy_rng start(int i, uint64_t seed) {
    struct cvy_rng rng;
    cvy_rng_init(&rng, seed, CVY_RNG_TEST, (uint64_t)i, 0);
    return rng;
}

void cvy_fill_normal(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    struct cvy_rng rng = start(i, seed);
    int64_t n = cvy_shape_count(&desc->shape);
    for (int64_t k = 0; k < n; k++)
        values[k] = cvy_rng_normal(&rng);
}

void cvy_fill_uniform(int i, const struct cvy_desc *desc, uint64_t seed, double low, double high,
                      double *values) {
    struct cvy_rng rng = start(i, seed);
    int64_t n = cvy_shape_count(&desc->shape);
    for (int64_t k = 0; k < n; k++)
        values[k] = low + (high - low) * cvy_rng_uniform(&rng);
}

void cvy_fill_below(int i, const struct cvy_desc *desc, uint64_t seed, uint32_t n, double *values) {
    struct cvy_rng rng = start(i, seed);
    int64_t count = cvy_shape_count(&desc->shape);
    for (int64_t k = 0; k < count; k++)
        values[k] = cvy_rng_below(&rng, n);
}

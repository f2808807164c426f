/* diagnose: where the first number that is not finite comes from. Runs the forward pass again, operator by
   operator, and looks at what each one reads and makes. Every device runs all of it, also after it found something:
   other stages wait for its messages. */
#include "engine/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct search {
    struct cvy_worker *w;
    const struct cvy_segment *segment;
    int32_t shard;
    int32_t slot;
    uint64_t step;
    void *host;
    size_t capacity; /* bytes */
    bool is_over;    /* found, or somebody else's: look no further */
    struct cvy_error found;
};

/* A number that is not finite has all bits of its exponent. */
static bool are_finite(cvy_dtype dtype, const void *values, size_t n_bytes) {
    const uint16_t exponent = dtype == CVY_BF16 ? 0x7F80 : 0x7C00;
    bool are = true;
    for (size_t i = 0; dtype == CVY_F32 && i < n_bytes / sizeof(float); i++)
        are &= isfinite(((const float *)values)[i]) != 0;
    for (size_t i = 0; dtype != CVY_F32 && i < n_bytes / sizeof exponent; i++)
        are &= (((const uint16_t *)values)[i] & exponent) != exponent;
    return are;
}

static cvy_status has_non_finite(struct search *s, const struct cvy_operand *operand, bool *out) {
    size_t n = s->w->device->backend->layout_bytes(operand->spec.layout, &operand->spec.desc);
    cvy_dtype dtype = operand->spec.desc.dtype;
    bool is_float = dtype == CVY_F32 || dtype == CVY_BF16 || dtype == CVY_F16;
    *out = false;
    if (!is_float || operand->spec.is_absent || operand->spec.is_private)
        return CVY_OK;
    if (n > s->capacity) {
        free(s->host);
        s->capacity = 0;
        CVY_TRY(cvy_alloc_items(1, n, &s->host));
        s->capacity = n;
    }
    CVY_TRY(s->w->device->backend->download(s->w->device, s->host,
                                            cvy_place_address(s->w, operand->place, s->slot, 0), n));
    *out = !are_finite(dtype, s->host, n);
    return CVY_OK;
}

static void remember(struct search *s, cvy_status status) {
    cvy_error_save(&s->found, status);
    s->is_over = true;
}

static bool is_from_host(const struct search *s, int32_t operand) {
    for (size_t i = 0; i < s->segment->ports.n; i++) {
        if (s->segment->ports.data[i].operand == operand && !strchr(s->segment->ports.data[i].name, ':'))
            return true;
    }
    return false;
}

/* An input that is bad although no operator of this stage made it so. */
static void blame_input(struct search *s, const struct cvy_prog_op *op, int32_t index) {
    const struct cvy_operand *operand = &s->segment->operands.data[index];
    bool is_stored = operand->place.space == CVY_SPACE_PERSIST || operand->place.space == CVY_SPACE_PACKED;
    if (is_stored)
        remember(s, CVY_FAIL(CVY_ERR_NAN,
                             "step %llu: the loss is not finite: %s is not, before %s of layer %s; lower the "
                             "learning rate (--lr) or "
                             "start from an earlier checkpoint",
                             (unsigned long long)s->step, operand->name, op->op->name, op->name));
    else if (is_from_host(s, index))
        remember(
            s, CVY_FAIL(CVY_ERR_NAN,
                        "step %llu: the loss is not finite: neither is the input \"%s\" of shard %d, read by "
                        "%s of layer %s; look at the data and at their mean and std (--mean, --std)",
                        (unsigned long long)s->step, operand->name, s->shard, op->op->name, op->name));
    else
        s->is_over = true; /* it came from another stage, which finds out */
}

/* What the operator reads is looked at before it runs: it may write over it. */
static cvy_status look_at_inputs(struct search *s, const struct cvy_prog_op *op) {
    for (int k = 0; k < op->n_in && !s->is_over; k++) {
        bool is_bad = false;
        if (op->in[k] < 0)
            continue;
        CVY_TRY(has_non_finite(s, &s->segment->operands.data[op->in[k]], &is_bad));
        if (is_bad)
            blame_input(s, op, op->in[k]);
    }
    return CVY_OK;
}

static cvy_status look_at_outputs(struct search *s, const struct cvy_prog_op *op) {
    for (int k = 0; k < op->n_out && !s->is_over; k++) {
        bool is_bad = false;
        CVY_TRY(has_non_finite(s, &s->segment->operands.data[op->out[k]], &is_bad));
        if (is_bad)
            remember(
                s,
                CVY_FAIL(CVY_ERR_NAN,
                         "step %llu: the loss is not finite: the first operator that made such a number is "
                         "%s of layer %s (shard %d); lower the learning rate (--lr)",
                         (unsigned long long)s->step, op->op->name, op->name, s->shard));
    }
    return CVY_OK;
}

static cvy_status run_and_look(struct search *s) {
    for (size_t i = 0; i < s->segment->ops.n; i++) {
        const struct cvy_prog_op *op = &s->segment->ops.data[i];
        if (!op->kernel)
            continue;
        CVY_TRY(look_at_inputs(s, op));
        CVY_TRY(cvy_execute_op(s->w, s->segment, op, s->slot, 0));
        CVY_TRY(look_at_outputs(s, op));
    }
    return cvy_device_synchronize(s->w->device); /* what comes next may run in another stream */
}

/* The schedule's own instructions for the shard's forward pass, with the run taken apart. */
static cvy_status search_forward(struct search *s, struct cvy_work *work) {
    const struct cvy_program *p = s->w->program;
    for (size_t k = 0; k < p->train.n; k++) {
        struct cvy_instr *i = &p->train.data[k];
        bool is_exchange = i->kind == CVY_I_EXCHANGE;
        if ((i->shard < 0 && !is_exchange) || i->phase != CVY_PHASE_FORWARD)
            continue;
        s->shard = i->shard;
        s->slot = i->slot;
        s->segment = is_exchange ? NULL
                                 : cvy_program_segment(p, CVY_PHASE_FORWARD, true, i->part < 0 ? 0 : i->part,
                                                       cvy_shard_size(work->n, p->n_shards, i->shard));
        if (i->kind == CVY_I_RUN && s->segment) {
            CVY_TRY(run_and_look(s));
        } else if (i->kind != CVY_I_RUN) {
            struct cvy_instr alone = *i; /* nothing runs beside it */
            alone.wait_events = 0;
            alone.record_event = -1;
            cvy_schedule one = {&alone, 1, 1};
            CVY_TRY(cvy_execute(s->w, &one, work));
        }
    }
    return s->found.code ? cvy_error_restore(&s->found) : CVY_OK;
}

cvy_status cvy_diagnose(struct cvy_worker *worker, struct cvy_work *work) {
    struct search s = {.w = worker, .step = work->step};
    cvy_status status = search_forward(&s, work);
    free(s.host);
    return status;
}

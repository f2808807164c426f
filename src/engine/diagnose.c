/* diagnose: where the first number that is not finite comes from. Runs the forward pass again, operator by
   operator, and looks at what each one reads and makes. */
#include "engine/plan.h"

#include <math.h>
#include <stdlib.h>

struct search {
    struct cvy_worker *w;
    const struct cvy_segment *segment;
    int32_t shard;
    uint64_t step;
    float *host;
    size_t capacity; /* floats */
};

static cvy_status has_non_finite(struct search *s, const struct cvy_operand *operand, bool *out) {
    size_t n = s->w->device->backend->layout_bytes(operand->spec.layout, &operand->spec.desc) / sizeof(float);
    *out = false;
    if (operand->spec.desc.dtype != CVY_F32 || operand->spec.is_absent || operand->spec.is_private)
        return CVY_OK;
    if (n > s->capacity) {
        free(s->host);
        s->capacity = 0;
        CVY_TRY(CVY_ALLOC(s->host, n));
        s->capacity = n;
    }
    CVY_TRY(s->w->device->backend->download(
        s->w->device, s->host, cvy_place_address(s->w, operand->place, 0, 0), n * sizeof(float)));
    for (size_t i = 0; i < n && !*out; i++)
        *out = !isfinite(s->host[i]);
    return CVY_OK;
}

/* What the operator reads is looked at before it runs: it may write over it. */
static cvy_status look_at_inputs(struct search *s, const struct cvy_prog_op *op) {
    for (int k = 0; k < op->n_in; k++) {
        bool is_bad = false;
        if (op->in[k] < 0)
            continue;
        const struct cvy_operand *operand = &s->segment->operands.data[op->in[k]];
        CVY_TRY(has_non_finite(s, operand, &is_bad));
        if (is_bad && (operand->place.space == CVY_SPACE_PERSIST || operand->place.space == CVY_SPACE_PACKED))
            return CVY_FAIL(CVY_ERR_NAN,
                            "step %llu: the loss is not finite: %s is not, before %s of layer %s; lower the "
                            "learning rate (--lr) or start "
                            "from an earlier checkpoint",
                            (unsigned long long)s->step, operand->name, op->op->name, op->name);
        if (is_bad)
            return CVY_FAIL(CVY_ERR_NAN,
                            "step %llu: the loss is not finite: the input %s of shard %d is not (read by "
                            "%s of layer %s); look at the data and at their mean and std (--mean, --std)",
                            (unsigned long long)s->step, operand->name, s->shard, op->op->name, op->name);
    }
    return CVY_OK;
}

static cvy_status look_at_outputs(struct search *s, const struct cvy_prog_op *op) {
    for (int k = 0; k < op->n_out; k++) {
        bool is_bad = false;
        const struct cvy_operand *operand = &s->segment->operands.data[op->out[k]];
        CVY_TRY(has_non_finite(s, operand, &is_bad));
        if (is_bad)
            return CVY_FAIL(
                CVY_ERR_NAN,
                "step %llu: the loss is not finite: the first operator that made such a number is %s of "
                "layer %s (shard %d); lower the learning rate (--lr)",
                (unsigned long long)s->step, op->op->name, op->name, s->shard);
    }
    return CVY_OK;
}

static cvy_status search_shard(struct search *s, struct cvy_work *work) {
    struct cvy_instr load = cvy_instr_make(CVY_I_LOAD);
    load.shard = s->shard;
    load.slot = 0;
    cvy_schedule schedule = {&load, 1, 1};
    CVY_TRY(cvy_execute(s->w, &schedule, work));
    for (size_t i = 0; i < s->segment->ops.n; i++) {
        const struct cvy_prog_op *op = &s->segment->ops.data[i];
        if (!op->kernel)
            continue;
        CVY_TRY(look_at_inputs(s, op));
        CVY_TRY(cvy_execute_op(s->w, s->segment, op, 0, 0));
        CVY_TRY(look_at_outputs(s, op));
    }
    return CVY_OK;
}

cvy_status cvy_diagnose(struct cvy_worker *worker, struct cvy_work *work) {
    struct search s = {.w = worker, .step = work->step};
    const struct cvy_program *p = worker->program;
    cvy_status status = CVY_OK;
    for (int32_t i = 0; i < p->n_local_shards && status == CVY_OK; i++) {
        s.shard = p->first_shard + i;
        s.segment =
            cvy_program_segment(p, CVY_PHASE_FORWARD, true, 0, cvy_shard_size(work->n, p->n_shards, s.shard));
        if (s.segment)
            status = search_shard(&s, work);
    }
    free(s.host);
    return status;
}

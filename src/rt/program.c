/* Programs: memory, and the step from a description to kernels that run.
   Invariant: everything that a program points to lies in its pool or in constant tables, but for kernels, which
   cvy_program_prepare makes and cvy_program_free releases. */
#include "rt/program.h"

#include <stdlib.h>

static void release_kernels(struct cvy_segment *segment) {
    for (size_t i = 0; i < segment->ops.n; i++) {
        struct cvy_kernel *kernel = segment->ops.data[i].kernel;
        if (kernel && kernel->impl->release)
            kernel->impl->release(kernel);
        segment->ops.data[i].kernel = NULL;
    }
}

static void free_segment(struct cvy_segment *segment) {
    release_kernels(segment);
    cvy_vec_free(&segment->operands);
    cvy_vec_free(&segment->ops);
    cvy_vec_free(&segment->ports);
}

void cvy_program_drop_training(struct cvy_program *program) {
    size_t n = 0;
    for (size_t i = 0; i < program->segments.n; i++) {
        struct cvy_segment *segment = &program->segments.data[i];
        if (segment->is_training && segment->shard_size > 0)
            free_segment(segment);
        else
            program->segments.data[n++] = *segment;
    }
    program->segments.n = n;
}

void cvy_program_free(struct cvy_program *program) {
    if (!program)
        return;
    for (size_t i = 0; i < program->segments.n; i++)
        free_segment(&program->segments.data[i]);
    cvy_vec_free(&program->segments);
    cvy_vec_free(&program->train);
    cvy_vec_free(&program->accumulate);
    cvy_vec_free(&program->forward);
    cvy_vec_free(&program->backward);
    cvy_vec_free(&program->update);
    cvy_vec_free(&program->evaluate);
    cvy_vec_free(&program->start);
    cvy_vec_free(&program->buckets);
    cvy_vec_free(&program->partials);
    cvy_pool_free(&program->pool);
    free(program);
}

static size_t larger(int32_t a, int32_t b) { return (size_t)(a > b ? a : b); }

size_t cvy_program_bytes(const struct cvy_program *program) {
    return program->persist_bytes + program->packed_bytes +
           larger(program->n_sums, program->n_sums_split) * program->sum_bytes +
           larger(program->n_slots, program->n_slots_split) * program->slot_bytes + program->scratch_bytes +
           program->total_bytes + program->rows_bytes;
}

/* Views are bytes that lie there already; collectives belong to the transport. */
static bool needs_kernel(const struct cvy_op *op) { return !(op->flags & (CVY_OP_VIEW | CVY_OP_COLLECTIVE)); }

static void gather_specs(const struct cvy_segment *segment, const int32_t *index, int n,
                         struct cvy_operand_spec *out) {
    for (int i = 0; i < n; i++)
        out[i] = index[i] < 0 ? (struct cvy_operand_spec){.is_absent = true}
                              : segment->operands.data[index[i]].spec;
}

static cvy_status prepare_op(const struct cvy_segment *segment, struct cvy_prog_op *op,
                             struct cvy_device *device) {
    struct cvy_operand_spec *in = NULL, *out = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(CVY_ALLOC(in, (size_t)op->n_in));
    CVY_TRY_OUT(CVY_ALLOC(out, (size_t)op->n_out));
    gather_specs(segment, op->in, op->n_in, in);
    gather_specs(segment, op->out, op->n_out, out);
    struct cvy_call call = {.op = op->op,
                            .attrs = op->attrs,
                            .n_in = op->n_in,
                            .n_out = op->n_out,
                            .in = in,
                            .out = out,
                            .rule_batch = segment->rule_batch,
                            .algorithm = op->algorithm,
                            .is_training = segment->is_training};
    const struct cvy_kernel_impl *impl = cvy_kernel_select(device, &call, NULL);
    if (!impl) {
        status =
            CVY_FAIL(CVY_ERR_UNSUPPORTED, "%s: the %s backend has no kernel for operator %s; use another one",
                     op->name, device->backend->name, op->op->name);
        goto out;
    }
    status = impl->prepare(device, &call, &op->kernel, &op->scratch_bytes);
    if (status != CVY_OK)
        cvy_fail_prefix(status, "%s (%s) in segment %s: ", op->name, op->op->name, segment->name);
out:
    free(in);
    free(out);
    return status;
}

cvy_status cvy_program_prepare(struct cvy_program *program, struct cvy_device *device) {
    for (size_t s = 0; s < program->segments.n; s++) {
        struct cvy_segment *segment = &program->segments.data[s];
        for (size_t i = 0; i < segment->ops.n; i++) {
            struct cvy_prog_op *op = &segment->ops.data[i];
            if (op->kernel || !needs_kernel(op->op))
                continue;
            CVY_TRY(prepare_op(segment, op, device));
            size_t n_bytes = cvy_align_up(op->scratch_bytes, CVY_ALIGN);
            if (program->scratch_bytes < n_bytes)
                program->scratch_bytes = n_bytes;
        }
    }
    return CVY_OK;
}

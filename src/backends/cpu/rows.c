/* Rows among threads: see rows.h. All layouts are plain: such kernels have no `choose`. */
#include "backends/cpu/rows.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { GRAIN = 1024 }; /* elements: as a rule no two threads write the same cache line */

/* Dimensions from this one on lie in a row. */
static int first_dim(enum cpu_row row, int rank) {
    switch (row) {
    case CPU_ROW_ELEMENT:
        return rank;
    case CPU_ROW_LAST:
        return rank - 1;
    case CPU_ROW_IMAGE:
        return 1;
    case CPU_ROW_ALL:
        break;
    }
    return 0;
}

cvy_status cpu_rows_prepare(const struct cvy_device *device, const struct cvy_call *call,
                            const struct cpu_rows_work *work, struct cvy_kernel **out,
                            size_t *scratch_bytes) {
    struct cpu_rows *me;
    const struct cvy_shape *shape = work->of_output ? &call->out[0].desc.shape : &call->in[0].desc.shape;
    CVY_TRY(cvy_alloc_items(1, sizeof *me + call->op->attrs_size, (void **)&me));
    me->base.impl = work->impl;
    me->work = work;
    me->attrs = me + 1;
    me->shape = *shape;
    me->images = shape->dim[0];
    me->n_rows = me->n = 1;
    for (int i = 0; i < shape->n; i++)
        *(i < first_dim(work->row, shape->n) ? &me->n_rows : &me->n) *= shape->dim[i];
    me->n_parts = cpu_team_parts(me->n_rows * me->n, device->spec.n_threads);
    if (call->op->attrs_size)
        memcpy(me + 1, call->attrs, call->op->attrs_size);
    *scratch_bytes = work->finish ? (size_t)me->n_rows * sizeof *me->results : 0;
    *out = &me->base;
    return CVY_OK;
}

static void run_part(void *context, int part, int n_parts) {
    const struct cpu_rows *me = context;
    int64_t first, end;
    cpu_part(me->n_rows, (GRAIN + me->n - 1) / me->n, part, n_parts, &first, &end);
    if (first < end)
        me->work->span(me, first, end);
}

cvy_status cpu_rows_run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct cpu_rows *me = (struct cpu_rows *)kernel;
    me->in = in;
    me->out = out;
    me->results = scratch;
    cpu_team_run(me->n_parts, run_part, me);
    if (me->work->finish)
        me->work->finish(me);
    return CVY_OK;
}

void cpu_rows_release(struct cvy_kernel *kernel) { free(kernel); }

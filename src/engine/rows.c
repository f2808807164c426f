/* rows: what shards exchange within a pass, in the hands of the executor. */
#include "engine/step.h"

#include <string.h>

/* The exchange that a part ends with; the same for every shard size. */
static const struct cvy_operand *find_rows(const struct cvy_step *s) {
    for (size_t k = 0; k < s->w->program->segments.n; k++) {
        const struct cvy_segment *segment = &s->w->program->segments.data[k];
        bool is_it = segment->phase == s->i->phase && segment->is_training && segment->part == s->i->part;
        const struct cvy_prog_op *last = segment->ops.n ? &segment->ops.data[segment->ops.n - 1] : NULL;
        if (is_it && last && (last->op->flags & CVY_OP_COLLECTIVE))
            return &segment->operands.data[last->out[0]];
    }
    return NULL;
}

cvy_status cvy_rows_find(const struct cvy_step *s, char **at, size_t *n_bytes) {
    const struct cvy_operand *operand = find_rows(s);
    if (!operand)
        return CVY_FAIL(CVY_ERR_FAILED, "no segment's part %d ends with an exchange", s->i->part);
    *at = cvy_place_address(s->w, operand->place, 0, 0);
    *n_bytes = operand->place.n_bytes;
    return CVY_OK;
}

cvy_status cvy_rows_clear(const struct cvy_step *s) {
    const struct cvy_program *p = s->w->program;
    char *rows;
    size_t n_bytes;
    CVY_TRY(cvy_rows_find(s, &rows, &n_bytes));
    n_bytes /= (size_t)p->n_shards;
    for (int32_t shard = 0; shard < p->n_shards; shard++) {
        bool is_mine = shard >= p->first_shard && shard < p->first_shard + p->n_local_shards;
        if (!is_mine || cvy_shard_size(s->work->n, p->n_shards, shard) == 0)
            CVY_TRY(s->backend->zero(s->w->device, rows + (size_t)shard * n_bytes, n_bytes));
    }
    return CVY_OK;
}

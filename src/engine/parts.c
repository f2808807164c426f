/* parts: where passes are cut into segments: behind an exchange of rows, and in the backward pass where a bucket is
   complete. The graphs of all shard sizes have the same parts. */
#include "engine/cutter.h"

#include <stdlib.h>

static bool is_exchange(const struct cvy_graph *g, int32_t node, enum cvy_phase phase) {
    return node >= 0 && node < (int32_t)g->nodes.n && g->nodes.data[node].phase == phase &&
           (g->nodes.data[node].op->flags & CVY_OP_COLLECTIVE) != 0;
}

/* Bucket b is complete with the node that makes the last gradient of those up to it, the last with the stage. */
static int32_t bucket_end(const struct cvy_graph *g, int32_t bucket, int32_t first_bucket,
                          int32_t last_bucket) {
    int32_t end = -1;
    if (bucket == last_bucket)
        return (int32_t)g->nodes.n - 1;
    for (size_t i = 0; i < g->reducibles.n; i++) {
        int32_t node = g->values.data[g->reducibles.data[i].value].node, b = g->reducibles.data[i].bucket;
        if (b >= first_bucket && b <= bucket && node > end)
            end = node;
    }
    return end;
}

/* Cuts behind every exchange between `from` and `end`; there a part ends in any case. */
static cvy_status cut_range(const struct cvy_graph *g, enum cvy_phase phase, int32_t from,
                            struct cvy_part last, cvy_parts *out) {
    for (int32_t i = from; i < last.end; i++) {
        struct cvy_part part = {.end = i, .bucket = last.bucket, .is_exchange = true};
        if (is_exchange(g, i, phase))
            CVY_TRY(cvy_vec_push(out, part));
    }
    last.is_exchange = last.end >= from && is_exchange(g, last.end, phase);
    return cvy_vec_push(out, last);
}

cvy_status cvy_cut_parts(const struct cvy_graph *g, int32_t first_bucket, int32_t last_bucket,
                         cvy_parts parts[2]) {
    struct cvy_part whole = {.end = (int32_t)g->nodes.n - 1, .bucket = -1};
    CVY_TRY(cut_range(g, CVY_PHASE_FORWARD, 0, whole, &parts[CVY_PHASE_FORWARD]));
    int32_t from = 0;
    for (int32_t b = first_bucket; b >= 0 && b <= last_bucket; b++) {
        struct cvy_part last = {
            .end = bucket_end(g, b, first_bucket, last_bucket), .bucket = b, .is_bucket_end = true};
        if (is_exchange(g, last.end + 1, CVY_PHASE_BACKWARD)) /* of the row that completed the bucket */
            last.end++;
        CVY_TRY(cut_range(g, CVY_PHASE_BACKWARD, from, last, &parts[CVY_PHASE_BACKWARD]));
        from = last.end + 1 > from ? last.end + 1 : from;
    }
    return CVY_OK;
}

void cvy_parts_free(cvy_parts parts[2]) {
    cvy_vec_free(&parts[CVY_PHASE_FORWARD]);
    cvy_vec_free(&parts[CVY_PHASE_BACKWARD]);
}

bool cvy_has_exchanges(const struct cvy_graph *g) {
    for (size_t i = 0; i < g->nodes.n; i++) {
        if (g->nodes.data[i].op->flags & CVY_OP_COLLECTIVE)
            return true;
    }
    return false;
}

/* ---- where rows lie ---------------------------------------------------------------------------------- */

/* Bytes of the largest exchange. */
static size_t largest(const struct cvy_graph *g) {
    size_t most = 0;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct cvy_node *node = &g->nodes.data[i];
        if (!(node->op->flags & CVY_OP_COLLECTIVE))
            continue;
        size_t n = cvy_align_up(cvy_desc_bytes(&g->values.data[node->out[0]].desc), CVY_ALIGN);
        most = n > most ? n : most;
    }
    return most;
}

/* Two buffers in turn: while some shards still read the rows of one exchange, others write those of the next. */
size_t cvy_rows_bytes(const struct cvy_graph *g) { return 2 * largest(g); }

bool cvy_rows_place(const struct cvy_graph *g, cvy_value v, struct cvy_place *out) {
    size_t n_before = 0;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct cvy_node *node = &g->nodes.data[i];
        if (!(node->op->flags & CVY_OP_COLLECTIVE))
            continue;
        bool is_row = node->in[0] == v;
        if (is_row || node->out[0] == v) {
            *out = (struct cvy_place){is_row ? CVY_SPACE_ROW : CVY_SPACE_ROWS, n_before % 2 * largest(g),
                                      cvy_desc_bytes(&g->values.data[v].desc)};
            return true;
        }
        n_before++;
    }
    return false;
}

/* memory: where each value lies within a shard's slot on the device of one stage. Time is the order of
   execution, the stage's FORWARD nodes, then its BACKWARD ones. What another stage sends is there from the
   beginning of the phase in which it is made; what is sent away stays until its phase is over. A value holds
   its bytes from the node that makes it to its last reader; holes are filled best fit first. A view shares its
   input's bytes; an output takes its input's place when the operator and the kernel allow it and nobody reads
   the input afterwards. An output that nobody reads gets no place. */
#include "pass/pass.h"

#include <stdlib.h>
#include <string.h>

struct hole {
    size_t offset, n_bytes;
};

struct planner {
    const struct cvy_graph *g;
    const struct cvy_device *device;
    int32_t stage;
    struct cvy_slot_plan *plan;
    int32_t *order;       /* nodes of this stage by time */
    int64_t n, n_forward; /* how many, and how many of them FORWARD */
    bool *in_slot;        /* per value */
    int64_t *last_use;    /* per value: time; roots take the maximum over what shares their bytes */
    bool *used;
    struct cvy_operand_spec *in, *out;
    CVY_VEC(struct hole) holes; /* by offset, never adjacent */
};

static cvy_value root_of(const struct planner *p, cvy_value v) {
    while (p->plan->storage[v] != v) {
        v = p->plan->storage[v];
    }
    return v;
}

static cvy_status take_hole(struct planner *p, size_t n_bytes, size_t *offset) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < p->holes.n; i++) {
        if (p->holes.data[i].n_bytes >= n_bytes &&
            (best == SIZE_MAX || p->holes.data[i].n_bytes < p->holes.data[best].n_bytes)) {
            best = i;
        }
    }
    if (best == SIZE_MAX) {
        *offset = p->plan->slot_bytes;
        p->plan->slot_bytes += n_bytes;
        return CVY_OK;
    }
    struct hole *hole = &p->holes.data[best];
    *offset = hole->offset;
    hole->offset += n_bytes;
    hole->n_bytes -= n_bytes;
    if (hole->n_bytes == 0) {
        memmove(hole, hole + 1, (p->holes.n - best - 1) * sizeof *hole);
        p->holes.n--;
    }
    return CVY_OK;
}

static cvy_status give_back(struct planner *p, size_t offset, size_t n_bytes) {
    size_t i = 0;
    while (i < p->holes.n && p->holes.data[i].offset < offset) {
        i++;
    }
    CVY_TRY(cvy_vec_push(&p->holes, (struct hole){0, 0}));
    struct hole *h = p->holes.data;
    memmove(h + i + 1, h + i, (p->holes.n - 1 - i) * sizeof *h);
    h[i] = (struct hole){offset, n_bytes};
    if (i + 1 < p->holes.n && h[i].offset + h[i].n_bytes == h[i + 1].offset) {
        h[i].n_bytes += h[i + 1].n_bytes;
        memmove(h + i + 1, h + i + 2, (p->holes.n - i - 2) * sizeof *h);
        p->holes.n--;
    }
    if (i > 0 && h[i - 1].offset + h[i - 1].n_bytes == h[i].offset) {
        h[i - 1].n_bytes += h[i].n_bytes;
        memmove(h + i, h + i + 1, (p->holes.n - i - 1) * sizeof *h);
        p->holes.n--;
    }
    return CVY_OK;
}

static cvy_status place(struct planner *p, cvy_value v) {
    const struct cvy_value_info *info = &p->g->values.data[v];
    p->plan->n_bytes[v] =
        cvy_align_up(p->device->backend->layout_bytes(info->layout, &info->desc), CVY_ALIGN);
    return p->plan->n_bytes[v] ? take_hole(p, p->plan->n_bytes[v], &p->plan->offset[v]) : CVY_OK;
}

static bool is_view(const struct cvy_node *node) { return (node->op->flags & CVY_OP_VIEW) != 0; }

/* The maker of v, when that is another stage; else NULL. */
static const struct cvy_node *foreign_maker(const struct planner *p, cvy_value v) {
    int32_t node = p->g->values.data[v].node;
    const struct cvy_node *maker = node < 0 ? NULL : &p->g->nodes.data[node];
    bool is_activation = maker && (maker->phase == CVY_PHASE_FORWARD || maker->phase == CVY_PHASE_BACKWARD);
    return is_activation && maker->stage != p->stage ? maker : NULL;
}

/* When v comes into the slot without a node of this stage: -1 at the start, n_forward before the backward pass. */
static int64_t arrival(const struct planner *p, cvy_value v) {
    const struct cvy_node *maker = foreign_maker(p, v);
    return maker && maker->phase == CVY_PHASE_BACKWARD ? p->n_forward : -1;
}

static void mark_made(struct planner *p) {
    for (int64_t t = 0; t < p->n; t++) {
        const struct cvy_node *node = &p->g->nodes.data[p->order[t]];
        for (int o = 0; o < node->n_out; o++) {
            p->in_slot[node->out[o]] = true;
            p->last_use[node->out[o]] = t;
        }
        if (is_view(node))
            p->plan->storage[node->out[0]] = node->in[0];
    }
    for (size_t i = 0; i < p->g->reducibles.n; i++)
        p->in_slot[p->g->reducibles.data[i].value] = false;
    for (int64_t t = 0; t < p->n; t++) { /* rows lie beside those of the other shards */
        const struct cvy_node *node = &p->g->nodes.data[p->order[t]];
        if (node->op->flags & CVY_OP_COLLECTIVE)
            p->in_slot[node->in[0]] = p->in_slot[node->out[0]] = false;
    }
}

static void mark_read(struct planner *p) {
    for (int64_t t = 0; t < p->n; t++) {
        const struct cvy_node *node = &p->g->nodes.data[p->order[t]];
        for (int k = 0; k < node->n_in; k++) {
            cvy_value v = node->in[k];
            if (v == CVY_NONE)
                continue;
            if (p->g->values.data[v].kind == CVY_VALUE_INPUT || foreign_maker(p, v))
                p->in_slot[v] = true;
            p->last_use[root_of(p, v)] = t;
        }
    }
}

/* Messages leave when their phase is over; outputs are read at the very end. */
static void mark_sent(struct planner *p) {
    for (size_t i = 0; i < p->g->nodes.n; i++) {
        const struct cvy_node *node = &p->g->nodes.data[i];
        for (int k = 0; node->stage != p->stage && k < node->n_in; k++) {
            cvy_value v = node->in[k];
            int32_t maker = v == CVY_NONE ? -1 : p->g->values.data[v].node; /* what is put in is not sent */
            if (maker < 0 || !p->in_slot[v] || foreign_maker(p, v))
                continue;
            bool is_forward = p->g->nodes.data[maker].phase == CVY_PHASE_FORWARD;
            int64_t until = is_forward ? p->n_forward : p->n;
            cvy_value root = root_of(p, v);
            p->last_use[root] = p->last_use[root] > until ? p->last_use[root] : until;
        }
    }
    for (size_t i = 0; i < p->g->outputs.n; i++)
        p->last_use[root_of(p, p->g->outputs.data[i].value)] = p->n;
}

/* Slot membership, views and last uses, in the order of execution. */
static void find_uses(struct planner *p) {
    for (size_t v = 0; v < p->g->values.n; v++) {
        p->plan->storage[v] = (cvy_value)v;
        p->plan->offset[v] = SIZE_MAX;
        p->last_use[v] = -1;
    }
    mark_made(p);
    mark_read(p);
    mark_sent(p);
}

/* The root whose place output o of the node at time t may take, or CVY_NONE. */
static cvy_value reusable_input(struct planner *p, const struct cvy_node *node, int64_t t, int o,
                                uint32_t not_in_place) {
    const struct cvy_value_info *out = &p->g->values.data[node->out[o]];
    for (int a = 0; a < node->op->n_aliases; a++) {
        const struct cvy_alias alias = node->op->aliases[a];
        if (alias.out != o || (not_in_place >> o & 1) || alias.in >= node->n_in ||
            node->in[alias.in] == CVY_NONE) {
            continue;
        }
        cvy_value root = root_of(p, node->in[alias.in]);
        const struct cvy_value_info *in = &p->g->values.data[node->in[alias.in]];
        int n_same = 0; /* the input's bytes must come in once, and no other output may have taken them */
        for (int k = 0; k < node->n_in; k++) {
            n_same += node->in[k] != CVY_NONE && root_of(p, node->in[k]) == root;
        }
        for (int k = 0; k < o; k++) {
            n_same += root_of(p, node->out[k]) == root;
        }
        if (p->in_slot[root] && p->last_use[root] == t && n_same == 1 && in->layout == out->layout &&
            p->plan->n_bytes[root] ==
                cvy_align_up(p->device->backend->layout_bytes(out->layout, &out->desc), CVY_ALIGN)) {
            return root;
        }
    }
    return CVY_NONE;
}

static cvy_status place_outputs(struct planner *p, const struct cvy_node *node, int64_t t) {
    struct cvy_call call;
    cvy_call_of_node(p->g, node, p->used, p->in, p->out, &call);
    const struct cvy_kernel_impl *impl = is_view(node) ? NULL : cvy_kernel_select(p->device, &call, NULL);
    uint32_t not_in_place = impl ? impl->not_in_place : 0;
    for (int o = 0; o < node->n_out; o++) {
        cvy_value v = node->out[o];
        if (!p->in_slot[v] || !p->used[v] || p->plan->storage[v] != v) {
            continue;
        }
        cvy_value root = reusable_input(p, node, t, o, not_in_place);
        if (root != CVY_NONE) {
            p->plan->storage[v] = root;
            p->last_use[root] = p->last_use[v] > t ? p->last_use[v] : t;
        } else {
            CVY_TRY(place(p, v));
        }
    }
    return CVY_OK;
}

static cvy_status free_dead(struct planner *p, const struct cvy_node *node, int64_t t) {
    for (int i = 0; i < node->n_in + node->n_out; i++) {
        cvy_value v = i < node->n_in ? node->in[i] : node->out[i - node->n_in];
        if (v == CVY_NONE) {
            continue;
        }
        cvy_value root = root_of(p, v);
        if (p->in_slot[root] && p->plan->n_bytes[root] && p->last_use[root] == t) {
            p->last_use[root] = -2; /* once */
            CVY_TRY(give_back(p, p->plan->offset[root], p->plan->n_bytes[root]));
        }
    }
    return CVY_OK;
}

static cvy_status order_nodes(struct planner *p) {
    CVY_TRY(CVY_ALLOC(p->order, p->g->nodes.n));
    for (int phase = CVY_PHASE_FORWARD; phase <= CVY_PHASE_BACKWARD; phase++) {
        for (size_t i = 0; i < p->g->nodes.n; i++) {
            const struct cvy_node *node = &p->g->nodes.data[i];
            if ((int)node->phase == phase && node->stage == p->stage)
                p->order[p->n++] = (int32_t)i;
        }
        p->n_forward = phase == CVY_PHASE_FORWARD ? p->n : p->n_forward;
    }
    return CVY_OK;
}

/* Inputs and messages that come at this time. */
static cvy_status place_arrivals(struct planner *p, int64_t t) {
    for (size_t v = 0; v < p->g->values.n; v++) {
        bool comes = p->g->values.data[v].kind == CVY_VALUE_INPUT || foreign_maker(p, (cvy_value)v);
        if (p->in_slot[v] && comes && arrival(p, (cvy_value)v) == t)
            CVY_TRY(place(p, (cvy_value)v));
    }
    return CVY_OK;
}

static cvy_status plan_nodes(struct planner *p) {
    CVY_TRY(order_nodes(p));
    find_uses(p);
    CVY_TRY(place_arrivals(p, -1));
    for (int64_t t = 0; t < p->n; t++) {
        const struct cvy_node *node = &p->g->nodes.data[p->order[t]];
        if (t == p->n_forward)
            CVY_TRY(place_arrivals(p, t));
        CVY_TRY(place_outputs(p, node, t));
        CVY_TRY(free_dead(p, node, t));
    }
    for (size_t v = 0; v < p->g->values.n; v++) { /* everyone gets the offset of the bytes it shares */
        cvy_value root = root_of(p, (cvy_value)v);
        p->plan->storage[v] = root;
        if (p->in_slot[v] && p->in_slot[root]) {
            p->plan->offset[v] = p->plan->offset[root];
            p->plan->n_bytes[v] = p->plan->n_bytes[root];
        }
    }
    return CVY_OK;
}

cvy_status cvy_pass_memory(const struct cvy_graph *g, const struct cvy_device *device, int32_t stage,
                           struct cvy_slot_plan *out) {
    struct planner p = {.g = g, .device = device, .stage = stage, .plan = out};
    cvy_status status = CVY_OK;
    *out = (struct cvy_slot_plan){.n_values = g->values.n};
    CVY_TRY_OUT(CVY_ALLOC(out->offset, g->values.n));
    CVY_TRY_OUT(CVY_ALLOC(out->n_bytes, g->values.n));
    CVY_TRY_OUT(CVY_ALLOC(out->storage, g->values.n));
    CVY_TRY_OUT(CVY_ALLOC(p.in_slot, g->values.n));
    CVY_TRY_OUT(CVY_ALLOC(p.last_use, g->values.n));
    CVY_TRY_OUT(CVY_ALLOC(p.in, CVY_MAX_OPERANDS));
    CVY_TRY_OUT(CVY_ALLOC(p.out, CVY_MAX_OPERANDS));
    CVY_TRY_OUT(cvy_graph_used(g, &p.used));
    CVY_TRY_OUT(plan_nodes(&p));
out:
    free(p.order);
    free(p.in_slot);
    free(p.last_use);
    free(p.used);
    free(p.in);
    free(p.out);
    cvy_vec_free(&p.holes);
    if (status != CVY_OK) {
        cvy_slot_plan_free(out);
    }
    return status;
}

void cvy_slot_plan_free(struct cvy_slot_plan *plan) {
    free(plan->offset);
    free(plan->n_bytes);
    free(plan->storage);
    *plan = (struct cvy_slot_plan){0};
}

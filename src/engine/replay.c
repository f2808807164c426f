/* See replay.h. */
#include "engine/replay.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- gates ---------------------------------------------------------------------------------------------- */

enum { POSTS_FIRST = 1, POSTS_LAST = 2, AWAITS = 4 };
enum where { EVERYBODY, REPLICAS, LINK }; /* who meets */

struct meeting {    /* an instruction's part in one; without padding, as it is compared by its bytes */
    int32_t key[7]; /* who, which group of them, what */
    int32_t device, instr, role;
};
typedef CVY_VEC(struct meeting) meetings;

/* A stage tells all stages; alone there is nothing to tell. */
static bool is_for_everybody(const struct cvy_replay *r, enum cvy_instr_kind kind) {
    return r->n_stages > 1 && (kind == CVY_I_CHECK || kind == CVY_I_FINITE || kind == CVY_I_CLIP);
}

/* The key's first three say who meets: EVERYBODY; the REPLICAS of a stage; of a LINK replica and both stages. */
static bool find_meeting(const struct cvy_replay *r, const struct cvy_replay_device *d,
                         const struct cvy_replay_instr *i, struct meeting *out) {
    const int32_t phase = (int32_t)i->phase, kind = (int32_t)i->kind;
    switch (i->kind) {
    case CVY_I_SEND:
        *out = (struct meeting){.key = {LINK, d->replica, d->stage, i->part, phase, i->shard},
                                .role = POSTS_LAST};
        return true;
    case CVY_I_RECV:
        *out =
            (struct meeting){.key = {LINK, d->replica, i->part, d->stage, phase, i->shard}, .role = AWAITS};
        return true;
    case CVY_I_REDUCE:
        *out = (struct meeting){.key = {REPLICAS, d->stage, CVY_I_WAIT, i->bucket}, .role = POSTS_LAST};
        return r->is_between_processes;
    case CVY_I_WAIT:
        *out = (struct meeting){.key = {REPLICAS, d->stage, CVY_I_WAIT, i->bucket},
                                .role = r->is_between_processes ? AWAITS : POSTS_FIRST | AWAITS};
        return true;
    case CVY_I_BROADCAST:
    case CVY_I_EXCHANGE:
        *out =
            (struct meeting){.key = {REPLICAS, d->stage, kind, phase, i->part}, .role = POSTS_FIRST | AWAITS};
        return true;
    default:
        *out = (struct meeting){.key = {EVERYBODY, kind}, .role = POSTS_FIRST | AWAITS};
        return is_for_everybody(r, i->kind);
    }
}

static int by_key(const void *a, const void *b) {
    return memcmp(((const struct meeting *)a)->key, ((const struct meeting *)b)->key,
                  sizeof((const struct meeting *)a)->key);
}

static cvy_status find_meetings(const struct cvy_replay *r, meetings *out) {
    for (size_t d = 0; d < r->devices.n; d++) {
        const struct cvy_replay_device *device = &r->devices.data[d];
        for (size_t k = 0; k < device->instrs.n; k++) {
            struct meeting m;
            if (!find_meeting(r, device, &device->instrs.data[k], &m))
                continue;
            m.device = (int32_t)d;
            m.instr = (int32_t)k;
            CVY_TRY(cvy_vec_push(out, m));
        }
    }
    if (out->n)
        qsort(out->data, out->n, sizeof *out->data, by_key);
    return CVY_OK;
}

/* Meetings first .. end - 1 are at one gate. */
static cvy_status add_gate(struct cvy_replay *r, const meetings *all, size_t first, size_t end) {
    struct cvy_replay_gate gate = {0};
    const int32_t number = (int32_t)r->gates.n;
    for (size_t k = first; k < end; k++) {
        const struct meeting *m = &all->data[k];
        struct cvy_replay_instr *i = &r->devices.data[m->device].instrs.data[m->instr];
        const bool posts = m->role & (POSTS_FIRST | POSTS_LAST);
        gate.n_posts += posts;
        i->posts = posts ? number : -1;
        i->awaits = m->role & AWAITS ? number : -1;
        i->is_posted_at_end = m->role & POSTS_LAST;
    }
    if (gate.n_posts == 0)
        return CVY_FAIL(
            CVY_ERR_DATA, "device %d waits in instruction %d (%s) for what no device does",
            all->data[first].device, all->data[first].instr,
            cvy_instr_name(
                r->devices.data[all->data[first].device].instrs.data[all->data[first].instr].kind));
    return cvy_vec_push(&r->gates, gate);
}

cvy_status cvy_replay_link(struct cvy_replay *r) {
    meetings all = {0};
    cvy_status status;
    r->gates.n = 0;
    for (size_t d = 0; d < r->devices.n; d++) {
        for (size_t k = 0; k < r->devices.data[d].instrs.n; k++)
            r->devices.data[d].instrs.data[k].posts = r->devices.data[d].instrs.data[k].awaits = -1;
    }
    CVY_TRY_OUT(find_meetings(r, &all));
    for (size_t first = 0, end; first < all.n; first = end) {
        for (end = first + 1; end < all.n && by_key(&all.data[first], &all.data[end]) == 0;)
            end++;
        CVY_TRY_OUT(add_gate(r, &all, first, end));
    }
out:
    cvy_vec_free(&all);
    return status;
}

/* ---- own times ------------------------------------------------------------------------------------------ */

cvy_status cvy_replay_add_own(struct cvy_replay *r, const int64_t *const *ends) {
    int64_t *latest = NULL;
    CVY_TRY(CVY_ALLOC(latest, r->gates.n));
    for (size_t g = 0; g < r->gates.n; g++)
        latest[g] = INT64_MIN;
    for (size_t d = 0; d < r->devices.n; d++) {
        for (size_t k = 0; k < r->devices.data[d].instrs.n; k++) {
            const struct cvy_replay_instr *i = &r->devices.data[d].instrs.data[k];
            const int64_t posted = i->is_posted_at_end ? ends[d][k + 1] : ends[d][k];
            if (i->posts >= 0 && posted > latest[i->posts])
                latest[i->posts] = posted;
        }
    }
    for (size_t d = 0; d < r->devices.n; d++) {
        for (size_t k = 0; k < r->devices.data[d].instrs.n; k++) {
            struct cvy_replay_instr *i = &r->devices.data[d].instrs.data[k];
            const int64_t ready =
                i->awaits < 0 || latest[i->awaits] < ends[d][k] ? ends[d][k] : latest[i->awaits];
            i->own_us += ends[d][k + 1] > ready ? (double)(ends[d][k + 1] - ready) * 1e-3 : 0;
        }
    }
    free(latest);
    return CVY_OK;
}

/* ---- the replay ----------------------------------------------------------------------------------------- */

struct at { /* a device during the replay */
    size_t instr;
    double time;
    bool has_posted; /* where its instruction begins */
};

struct passing { /* a gate */
    int32_t n;
    double latest;
};

static void post(struct passing *gates, int32_t gate, double time) {
    gates[gate].n++;
    gates[gate].latest = time > gates[gate].latest ? time : gates[gate].latest;
}

/* As far as it gets; false: it gets nowhere. */
static bool advance(const struct cvy_replay *r, const struct cvy_replay_device *d, struct passing *gates,
                    struct at *at) {
    const size_t begin = at->instr;
    for (; at->instr < d->instrs.n; at->instr++, at->has_posted = false) {
        const struct cvy_replay_instr *i = &d->instrs.data[at->instr];
        if (i->posts >= 0 && !i->is_posted_at_end && !at->has_posted) {
            post(gates, i->posts, at->time);
            at->has_posted = true;
        }
        if (i->awaits >= 0) {
            const struct passing *gate = &gates[i->awaits];
            if (gate->n < r->gates.data[i->awaits].n_posts)
                break;
            at->time = gate->latest > at->time ? gate->latest : at->time;
        }
        at->time += i->own_us;
        if (i->posts >= 0 && i->is_posted_at_end)
            post(gates, i->posts, at->time);
    }
    return at->instr > begin;
}

static cvy_status sum_up(const struct cvy_replay *r, const struct at *at, struct cvy_replay_result *out) {
    out->span_us = 0;
    for (size_t d = 0; d < r->devices.n; d++) {
        double busy = 0;
        for (size_t k = 0; k < r->devices.data[d].instrs.n; k++)
            busy += r->devices.data[d].instrs.data[k].own_us;
        if (at[d].instr < r->devices.data[d].instrs.n)
            return CVY_FAIL(CVY_ERR_DATA,
                            "device %zu stands in instruction %zu (%s) for ever: devices wait for each other",
                            d, at[d].instr, cvy_instr_name(r->devices.data[d].instrs.data[at[d].instr].kind));
        out->span_us = at[d].time > out->span_us ? at[d].time : out->span_us;
        CVY_TRY(cvy_vec_push(&out->busy_us, busy));
    }
    return CVY_OK;
}

cvy_status cvy_replay_run(const struct cvy_replay *r, struct cvy_replay_result *out) {
    struct passing *gates = NULL;
    struct at *at = NULL;
    cvy_status status;
    CVY_TRY_OUT(CVY_ALLOC(gates, r->gates.n));
    CVY_TRY_OUT(CVY_ALLOC(at, r->devices.n));
    for (bool is_moving = true; is_moving;) {
        is_moving = false;
        for (size_t d = 0; d < r->devices.n; d++)
            is_moving |= advance(r, &r->devices.data[d], gates, &at[d]);
    }
    status = sum_up(r, at, out);
out:
    free(gates);
    free(at);
    return status;
}

void cvy_replay_result_free(struct cvy_replay_result *result) { cvy_vec_free(&result->busy_us); }

/* ---- copies --------------------------------------------------------------------------------------------- */

cvy_status cvy_replay_copy(const struct cvy_replay *r, struct cvy_replay *out) {
    *out = (struct cvy_replay){.n_stages = r->n_stages, .is_between_processes = r->is_between_processes};
    for (size_t g = 0; g < r->gates.n; g++)
        CVY_TRY(cvy_vec_push(&out->gates, r->gates.data[g]));
    for (size_t d = 0; d < r->devices.n; d++) {
        const struct cvy_replay_device *device = &r->devices.data[d];
        CVY_TRY(cvy_vec_push(&out->devices, (struct cvy_replay_device){device->stage, device->replica, {0}}));
        for (size_t k = 0; k < device->instrs.n; k++)
            CVY_TRY(cvy_vec_push(&out->devices.data[d].instrs, device->instrs.data[k]));
    }
    return CVY_OK;
}

void cvy_replay_free(struct cvy_replay *r) {
    for (size_t d = 0; d < r->devices.n; d++)
        cvy_vec_free(&r->devices.data[d].instrs);
    cvy_vec_free(&r->devices);
    cvy_vec_free(&r->gates);
}

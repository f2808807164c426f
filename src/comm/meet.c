/* What members bring to a meeting: reductions and broadcasts, and whether all of them brought the same one. */
#include "comm/hub.h"
#include "rt/tree.h"

#include <string.h>

/* ---- reductions ---------------------------------------------------------------------------------- */

cvy_status cvy_hub_post_reduction(struct cvy_group *me, int slot, const struct cvy_reduction *what) {
    CVY_TRY(cvy_hub_check(me, what->name, 0));
    if (slot < 0 || slot >= CVY_MAX_REDUCTIONS || me->open[slot])
        return CVY_FAIL(CVY_ERR_FAILED, "%s: slot %d is not free for a reduction", what->name, slot);
    if (what->n_partials > CVY_MAX_PARTIALS)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED,
                        "%s: %d partial sums, more than %d: take fewer shards or devices", what->name,
                        what->n_partials, CVY_MAX_PARTIALS);
    me->open[slot] = what;
    me->rounds[slot]++;
    return CVY_OK;
}

static bool is_same_reduction(const struct cvy_reduction *a, const struct cvy_reduction *b) {
    bool is_same = a->n == b->n && a->n_shards == b->n_shards && a->n_partials == b->n_partials &&
                   strcmp(a->name, b->name) == 0;
    for (int32_t p = 0; is_same && p < a->n_partials; p++) {
        const struct cvy_partial *x = &a->partials[p], *y = &b->partials[p];
        is_same = x->first == y->first && x->level == y->level && x->device == y->device;
    }
    return is_same;
}

cvy_status cvy_hub_collect(struct cvy_group *me, int slot, struct cvy_blocksum *out) {
    const struct cvy_hub *hub = me->hub;
    const struct cvy_reduction *what = me->open[slot];
    int32_t n_results = 0;
    for (int m = 0; m < hub->n; m++) {
        const struct cvy_reduction *other = hub->members[m]->open[slot];
        if (!is_same_reduction(what, other))
            return CVY_FAIL(CVY_ERR_LOST,
                            "member %d brought %s (%zu floats, %d shards, %d partial sums) and "
                            "member %d brought %s (%zu, %d, %d): they must run the same program",
                            me->rank, what->name, what->n, what->n_shards, what->n_partials, m, other->name,
                            other->n, other->n_shards, other->n_partials);
        if (other->result)
            me->results[n_results++] = other->result;
    }
    for (int32_t p = 0, k = 0; p < what->n_partials; p++, k++) {
        int32_t owner = what->partials[p].device;
        if (owner < 0 || owner >= hub->n)
            return CVY_FAIL(CVY_ERR_FAILED, "%s: partial sum %d belongs to member %d of %d", what->name, p,
                            owner, hub->n);
        if (p > 0 && owner != what->partials[p - 1].device)
            k = 0; /* shards of a member are consecutive: this is the next member's first */
        me->partials[p] = hub->members[owner]->open[slot]->mine[k];
    }
    CVY_TRY(cvy_tree_plan(what->n_shards, what->partials, what->n_partials, me->n_adds));
    *out = (struct cvy_blocksum){.n_partials = what->n_partials,
                                 .partials = me->partials,
                                 .n_adds = me->n_adds,
                                 .n_results = n_results,
                                 .results = me->results};
    return CVY_OK;
}

/* ---- broadcasts ----------------------------------------------------------------------------------- */

cvy_status cvy_hub_check_broadcast(struct cvy_group *me, int root) {
    const struct cvy_broadcast *mine = &me->broadcast, *from = &me->hub->members[root]->broadcast;
    if (from->root == root && from->n_bytes == mine->n_bytes && strcmp(from->name, mine->name) == 0)
        return CVY_OK;
    CVY_FAIL(CVY_ERR_LOST,
             "member %d is at %s (%zu bytes from member %d) and member %d at %s (%zu bytes from "
             "member %d): they must run the same program",
             me->rank, mine->name, mine->n_bytes, root, root, from->name, from->n_bytes, from->root);
    return cvy_hub_give_up(me);
}

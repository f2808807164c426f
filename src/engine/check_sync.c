/* See check_sync.h. */
#include "engine/check_sync.h"
#include "engine/world.h"

#include <stdlib.h>
#include <xxhash.h>

struct hashes {
    uint64_t *all;   /* [device][value of its stage], of all processes */
    size_t n_values; /* room for each device: of the stage that has most */
};

static size_t room(const struct cvy_plan *plan) {
    size_t most = 0;
    for (int32_t stage = 0; stage < plan->mesh.pipe; stage++)
        most = plan->stores[stage].values.n > most ? plan->stores[stage].values.n : most;
    return most;
}

/* The learning rate and its like are uploaded at each update. */
static bool is_compared(const struct cvy_stored *s) {
    return s->kind == CVY_VALUE_PARAM || s->kind == CVY_VALUE_BUFFER || s->kind == CVY_VALUE_STATE;
}

static cvy_status hash_task(struct cvy_worker *worker, void *argument) {
    const struct hashes *h = argument;
    const struct cvy_store *store = &worker->plan->stores[worker->rank % worker->plan->mesh.pipe];
    uint64_t *mine = h->all + (size_t)worker->rank * h->n_values;
    cvy_status status = CVY_OK;
    void *host = NULL;
    for (size_t i = 0; i < store->values.n && status == CVY_OK; i++) {
        const struct cvy_stored *value = cvy_store_find(&worker->store, store->values.data[i].name);
        size_t n_bytes = value ? cvy_desc_bytes(&value->desc) : 0;
        if (!value || !is_compared(value))
            continue;
        status = cvy_alloc_items(1, n_bytes, &host);
        if (status == CVY_OK)
            status = cvy_stored_read(worker, value, host);
        if (status == CVY_OK)
            mine[i] = XXH3_64bits(host, n_bytes);
        free(host);
        host = NULL;
    }
    return status;
}

/* Every process has all hashes and finds the same. */
static cvy_status compare(const struct cvy_session *session, const struct hashes *h) {
    const struct cvy_plan *plan = session->plan;
    const int32_t pipe = plan->mesh.pipe;
    for (int32_t stage = 0; stage < pipe; stage++) {
        for (size_t i = 0; i < plan->stores[stage].values.n; i++) {
            for (int32_t d = stage + pipe; d < plan->n_devices; d += pipe) {
                uint64_t want = h->all[(size_t)stage * h->n_values + i],
                         got = h->all[(size_t)d * h->n_values + i];
                if (got != want)
                    return CVY_FAIL(
                        CVY_ERR_FAILED,
                        "after update %llu replicas differ: device %d (rank %d) has other values of '%s' "
                        "than device %d (rank %d): xxh3 %016llx, not %016llx; go on from an earlier "
                        "checkpoint, without that device if it happens again",
                        (unsigned long long)session->n_updates, d, cvy_plan_process(plan, d),
                        plan->stores[stage].values.data[i].name, stage, cvy_plan_process(plan, stage),
                        (unsigned long long)got, (unsigned long long)want);
            }
        }
    }
    return CVY_OK;
}

cvy_status cvy_session_check_sync(struct cvy_session *session) {
    struct cvy_plan *plan = session->plan;
    struct hashes h = {.n_values = room(plan)};
    cvy_status status;
    if (plan->mesh.data == 1 || plan->strategy->is_one_process)
        return CVY_OK;
    CVY_TRY_OUT(CVY_ALLOC(h.all, (size_t)plan->n_devices * h.n_values));
    CVY_TRY_OUT(cvy_team_run(&plan->team, hash_task, &h));
    CVY_TRY_OUT(cvy_world_gather(plan->options.world, h.all,
                                 (size_t)plan->team.n * h.n_values * sizeof *h.all, "hashes of the weights"));
    status = cvy_world_share_failure(plan->options.world, compare(session, &h), "hashes of the weights");
out:
    free(h.all);
    return status;
}

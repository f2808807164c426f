/* Stored values, one at a time, between host and device: plain on the host, in the master layout on the device. */
#include "engine/session.h"

cvy_status cvy_stored_read(struct cvy_worker *worker, const struct cvy_stored *stored, void *host) {
    struct cvy_device *device = worker->device;
    void *at = cvy_place_address(worker, stored->place, 0, 0), *from = at;
    if (stored->unpack) {
        void *staging = worker->memory[CVY_SPACE_NONE];
        CVY_TRY(stored->unpack->impl->run(stored->unpack, &at, &staging, worker->memory[CVY_SPACE_SCRATCH]));
        from = staging;
    }
    return device->backend->download(device, host, from, cvy_desc_bytes(&stored->desc));
}

cvy_status cvy_stored_write(struct cvy_worker *worker, const struct cvy_stored *stored, const void *host) {
    struct cvy_device *device = worker->device;
    void *at = cvy_place_address(worker, stored->place, 0, 0), *staging = worker->memory[CVY_SPACE_NONE];
    worker->is_evaluation_stale = true;
    if (!stored->pack)
        return device->backend->upload(device, at, host, cvy_desc_bytes(&stored->desc));
    if (staging != host) /* else borrowed, see below */
        CVY_TRY(device->backend->upload(device, staging, host, cvy_desc_bytes(&stored->desc)));
    return stored->pack->impl->run(stored->pack, &staging, &at, worker->memory[CVY_SPACE_SCRATCH]);
}

cvy_status cvy_session_borrow(const struct cvy_session *session, void **host, void **own) {
    const struct cvy_plan *plan = session->plan;
    *own = *host = NULL;
    for (int i = 0; plan->backend->is_host_memory && i < plan->team.n && !*host; i++) {
        const struct cvy_worker *w = &plan->team.workers[i];
        if (w->memory_bytes[CVY_SPACE_NONE] >= session->staging_bytes)
            *host = w->memory[CVY_SPACE_NONE];
    }
    if (*host)
        return CVY_OK;
    CVY_TRY(cvy_alloc_items(1, session->staging_bytes, own));
    *host = *own;
    return CVY_OK;
}

/* See slowest.h. */
#include "engine/slowest.h"
#include "engine/world.h"

#include <stdlib.h>

void cvy_session_forget_waits(struct cvy_session *session) {
    for (int i = 0; i < session->plan->team.n; i++)
        session->plan->team.workers[i].waited_ns = 0;
}

cvy_status cvy_session_slowest(struct cvy_session *session, double loaded_s, struct cvy_slowest *out) {
    const struct cvy_plan *plan = session->plan;
    cvy_world *world = plan->options.world;
    const int n = plan->team.n, n_row = n + 1; /* of each process: its loading, then its devices' waits */
    double *all = NULL, *mine;
    *out = (struct cvy_slowest){.device = -1};
    if (plan->n_devices < 2 || plan->backend->streams)
        return CVY_OK;
    CVY_TRY(CVY_ALLOC(all, (size_t)cvy_world_size(world) * (size_t)n_row));
    mine = all + (ptrdiff_t)cvy_world_rank(world) * n_row;
    mine[0] = loaded_s;
    for (int i = 0; i < n; i++)
        mine[1 + i] = (double)plan->team.workers[i].waited_ns * 1e-9;
    cvy_status status = cvy_world_gather(world, all, (size_t)n_row * sizeof *all, "who was waited for");
    for (int32_t d = 0; status == CVY_OK && d < plan->n_devices; d++) {
        const double *row = all + (ptrdiff_t)(d / n) * n_row;
        double waited_s = row[1 + d % n];
        out->most_s = waited_s > out->most_s ? waited_s : out->most_s;
        if (out->device >= 0 && waited_s >= out->waited_s)
            continue;
        out->device = d;
        out->rank = d / n;
        out->waited_s = waited_s;
        out->loaded_s = row[0];
    }
    free(all);
    return status;
}

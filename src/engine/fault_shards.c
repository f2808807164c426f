/* uneven shards: S shards cannot be divided evenly among the replicas, so some compute one more while others wait. */
#include "engine/faults.h"

#include <stdio.h>

static const double EVEN = 1.15; /* the most shards of a replica over the mean, as far as it is no fault */

static bool is_of_shard(enum cvy_instr_kind kind) {
    return kind == CVY_I_RUN || kind == CVY_I_LOAD || kind == CVY_I_ADD || kind == CVY_I_SEND ||
           kind == CVY_I_RECV;
}

/* Every device has the mean of the shards. */
static void even_out(struct cvy_scene *scene, double mean) {
    for (size_t d = 0; d < scene->replay.devices.n; d++) {
        struct cvy_replay_device *device = &scene->replay.devices.data[d];
        const double mine = (double)cvy_scene_shards(scene, d);
        for (size_t k = 0; k < device->instrs.n && mine > 0; k++) {
            if (is_of_shard(device->instrs.data[k].kind))
                device->instrs.data[k].own_us *= mean / mine;
        }
    }
}

static cvy_status mend(struct cvy_scene *scene, struct cvy_verdict *out) {
    const struct cvy_profile_file *file = scene->file;
    const int64_t n = file->replay.n_stages > 0 ? (int64_t)file->devices.n / file->replay.n_stages : 0;
    if (file->has_streams || n < 2)
        return CVY_OK;
    const int64_t most = (file->shards + n - 1) / n, more = most * n,
                  shards = more <= file->batch_size ? more : file->shards / n * n;
    const double mean = (double)file->shards / (double)n;
    if ((double)most < EVEN * mean || shards < n)
        return CVY_OK;
    snprintf(out->cause, sizeof out->cause,
             "%lld shards on %lld replicas: some compute %lld, the mean is %.2f", (long long)file->shards,
             (long long)n, (long long)most, mean);
    snprintf(out->flags, sizeof out->flags, "--shards %lld", (long long)shards);
    snprintf(out->advice, sizeof out->advice,
             "take %s, a multiple of the replicas; another S is another run, with other bits", out->flags);
    even_out(scene, mean);
    return CVY_OK;
}

const struct cvy_fault cvy_fault_shards = {.name = "uneven shards", .mend = mend};

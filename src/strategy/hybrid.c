/* hybrid: a mesh data=D,pipe=P: D replicas, each a pipeline of P stages; the gradients of a stage are all-reduced
   among the D devices that hold it. */
#include "base/text.h"
#include "strategy/pipeline.h"

#include <stdio.h>
#include <string.h>

/* A mesh of n devices with as few stages as can be, but more than one. */
static struct cvy_mesh suggest(int32_t n) {
    int32_t pipe = n > 1 ? 2 : 1;
    while (n % pipe)
        pipe++;
    return (struct cvy_mesh){n / pipe, pipe};
}

static cvy_status mesh(int32_t n_devices, const char *asked, struct cvy_mesh *out) {
    int data = 0, pipe = 0, n_read = 0;
    struct cvy_mesh would = suggest(n_devices);
    if (!asked)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "strategy hybrid needs a mesh of its %d devices: --mesh data=%d,pipe=%d", n_devices,
                        would.data, would.pipe);
    bool is_read = (sscanf(asked, "data=%d,pipe=%d%n", &data, &pipe, &n_read) == 2 ||
                    sscanf(asked, "pipe=%d,data=%d%n", &pipe, &data, &n_read) == 2) &&
                   (size_t)n_read == strlen(asked);
    if (!is_read || data < 1 || pipe < 1)
        return CVY_FAIL(CVY_ERR_USAGE, "cannot read the mesh '%s': write data=D,pipe=P, here data=%d,pipe=%d",
                        asked, would.data, would.pipe);
    if ((int64_t)data * pipe != n_devices)
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "the mesh data=%d,pipe=%d has %lld places for %d devices: take --mesh data=%d,pipe=%d, or "
            "%lld devices",
            data, pipe, (long long)data * pipe, n_devices, would.data, would.pipe, (long long)data * pipe);
    *out = (struct cvy_mesh){data, pipe};
    return CVY_OK;
}

const struct cvy_strategy cvy_strategy_hybrid = {
    .name = "hybrid",
    .help = "replicas of a pipeline: --mesh data=D,pipe=P",
    .has_schedules = true,
    .mesh = mesh,
    .check = cvy_check_shards,
    .schedule = cvy_pipeline_schedule,
};

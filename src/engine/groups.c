/* groups: who talks with whom. One group of all devices, for messages between stages, the loss and giving up; and,
   when there are several replicas of several stages, one group for each stage, in which gradients are reduced.
   Devices of other processes are members too: their handles are NULL here. */
#include "engine/plan.h"

#include <stdlib.h>

/* The handle of a device in the group of its stage's replicas. */
static struct cvy_group *replicas_of(const struct cvy_plan *plan, int32_t device) {
    int32_t pipe = plan->mesh.pipe;
    return plan->replicas[device % pipe * plan->mesh.data + device / pipe];
}

static bool is_usable(const struct cvy_plan *plan) {
    const struct cvy_transport *transport = plan->team.transport;
    if (!plan->groups)
        return false;
    for (int32_t d = 0; d < plan->n_devices; d++) {
        if (plan->groups[d] && transport->abort_reason(plan->groups[d]))
            return false;
        if (plan->replicas[d] && transport->abort_reason(plan->replicas[d]))
            return false;
    }
    return true;
}

static cvy_status open_groups(struct cvy_plan *plan, int32_t *process) {
    const struct cvy_transport *transport = plan->team.transport;
    int data = plan->mesh.data, pipe = plan->mesh.pipe;
    struct cvy_group_spec spec = {.n = plan->n_devices, .timeout_s = plan->options.timeout_s};
    if (cvy_world_size(plan->options.world) > 1) {
        spec.world = plan->options.world;
        spec.process = process;
    }
    for (int32_t d = 0; d < plan->n_devices; d++)
        process[d] = cvy_plan_process(plan, d);
    CVY_TRY(transport->open(&spec, plan->groups));
    spec.n = data;
    for (int stage = 0; data > 1 && pipe > 1 && stage < pipe; stage++) {
        for (int r = 0; r < data; r++)
            process[r] = cvy_plan_process(plan, r * pipe + stage);
        CVY_TRY(transport->open(&spec, plan->replicas + stage * data));
    }
    return CVY_OK;
}

void cvy_plan_attach(const struct cvy_worker *w) {
    const struct cvy_device_transport *on_devices = w->plan->team.on_devices;
    if (!on_devices)
        return;
    on_devices->attach(w->group, w->device);
    if (w->replicas)
        on_devices->attach(w->replicas, w->device);
}

cvy_status cvy_plan_connect(struct cvy_plan *plan) {
    const cvy_world *world = plan->options.world;
    int32_t *process = NULL;
    if (plan->n_devices < 2)
        return CVY_OK;
    plan->team.transport = cvy_world_size(world) > 1 ? world->transport : cvy_transport_find("threads");
    if (is_usable(plan))
        return CVY_OK;
    cvy_plan_disconnect(plan);
    CVY_TRY(CVY_ALLOC(plan->groups, (size_t)plan->n_devices));
    CVY_TRY(CVY_ALLOC(plan->replicas, (size_t)plan->n_devices));
    CVY_TRY(CVY_ALLOC(process, (size_t)plan->n_devices));
    cvy_status status = open_groups(plan, process);
    free(process);
    CVY_TRY(status);
    for (int i = 0; i < plan->team.n; i++) {
        struct cvy_worker *w = &plan->team.workers[i];
        w->group = plan->groups[w->rank];
        w->replicas = plan->mesh.pipe == 1 ? w->group : replicas_of(plan, w->rank);
        w->is_linked = false;
        if (w->device)
            cvy_plan_attach(w);
    }
    return CVY_OK;
}

static void close_members(struct cvy_plan *plan, struct cvy_group **members, int n) {
    bool is_open = false;
    for (int m = 0; m < n; m++)
        is_open |= members[m] != NULL;
    if (is_open)
        plan->team.transport->close(n, members);
}

void cvy_plan_disconnect(struct cvy_plan *plan) {
    int data = plan->mesh.data, pipe = plan->mesh.pipe;
    for (int stage = 0; plan->replicas && stage < pipe; stage++)
        close_members(plan, plan->replicas + stage * data, data);
    if (plan->groups)
        close_members(plan, plan->groups, plan->n_devices);
    free(plan->replicas);
    free(plan->groups);
    plan->replicas = plan->groups = NULL;
}

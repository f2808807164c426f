/* groups: who talks with whom. One group of all devices, for messages between stages, the loss and giving up; and,
   when there are several replicas of several stages, one group for each stage, in which gradients are reduced. */
#include "engine/plan.h"

#include <stdlib.h>

static bool is_usable(const struct cvy_plan *plan) {
    const struct cvy_transport *transport = plan->team.transport;
    if (!plan->groups || !plan->groups[0] || transport->abort_reason(plan->groups[0]))
        return false;
    for (int i = 0; i < plan->n_devices; i++) {
        if (plan->replicas[i] && transport->abort_reason(plan->replicas[i]))
            return false;
    }
    return true;
}

static cvy_status open_groups(struct cvy_plan *plan) {
    const struct cvy_transport *transport = plan->team.transport;
    int data = plan->mesh.data, pipe = plan->mesh.pipe;
    CVY_TRY(CVY_ALLOC(plan->groups, (size_t)plan->n_devices));
    CVY_TRY(CVY_ALLOC(plan->replicas, (size_t)plan->n_devices));
    struct cvy_group_spec spec = {.n = plan->n_devices, .timeout_s = plan->options.timeout_s};
    CVY_TRY(transport->open(&spec, plan->groups));
    spec.n = data;
    for (int stage = 0; data > 1 && pipe > 1 && stage < pipe; stage++)
        CVY_TRY(transport->open(&spec, plan->replicas + stage * data));
    return CVY_OK;
}

cvy_status cvy_plan_connect(struct cvy_plan *plan) {
    int data = plan->mesh.data, pipe = plan->mesh.pipe;
    if (plan->n_devices < 2)
        return CVY_OK;
    plan->team.transport = cvy_transport_find("threads");
    if (is_usable(plan))
        return CVY_OK;
    cvy_plan_disconnect(plan);
    CVY_TRY(open_groups(plan));
    for (int i = 0; i < plan->n_devices; i++) {
        struct cvy_worker *w = &plan->team.workers[i];
        w->group = plan->groups[i];
        w->replicas = pipe == 1 ? w->group : plan->replicas[i % pipe * data + i / pipe];
        w->is_linked = false;
    }
    return CVY_OK;
}

void cvy_plan_disconnect(struct cvy_plan *plan) {
    int data = plan->mesh.data, pipe = plan->mesh.pipe;
    for (int stage = 0; plan->replicas && stage < pipe; stage++) {
        if (plan->replicas[stage * data])
            plan->team.transport->close(data, plan->replicas + stage * data);
    }
    if (plan->groups && plan->groups[0])
        plan->team.transport->close(plan->n_devices, plan->groups);
    free(plan->replicas);
    free(plan->groups);
    plan->replicas = plan->groups = NULL;
}

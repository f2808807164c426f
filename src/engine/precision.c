/* precision: what --amp means to a plan, and --on-nan. */
#include "engine/plan.h"

#include <string.h>

static cvy_status choose_guard(struct cvy_plan *plan) {
    const char *on_nan = plan->options.on_nan;
    if (on_nan && strcmp(on_nan, "stop") && strcmp(on_nan, "skip"))
        return CVY_FAIL(CVY_ERR_USAGE, "on numbers that are not finite '%s': take stop or skip", on_nan);
    if (on_nan && !plan->backend->not_finite)
        return CVY_FAIL(CVY_ERR_USAGE, "backend %s, --on-nan %s: it cannot watch gradients",
                        plan->backend->name, on_nan);
    plan->skips = on_nan && strcmp(on_nan, "skip") == 0;
    return CVY_OK;
}

cvy_status cvy_plan_choose_precision(struct cvy_plan *plan) {
    CVY_TRY(choose_guard(plan));
    const char *amp = plan->options.amp;
    plan->low = !amp ? CVY_F32 : strcmp(amp, "bf16") == 0 ? CVY_BF16 : CVY_F16;
    if (amp && strcmp(amp, "bf16") && strcmp(amp, "fp16"))
        return CVY_FAIL(CVY_ERR_USAGE, "mixed precision '%s': take bf16 or fp16", amp);
    if (!amp)
        return CVY_OK;
    const struct cvy_backend *backend = plan->backend;
    const char *reason =
        backend->amp_refusal ? backend->amp_refusal(plan->low) : "it computes in float32 only";
    if (reason)
        return CVY_FAIL(CVY_ERR_USAGE, "backend %s, --amp %s: %s", backend->name, amp, reason);
    return CVY_OK;
}

cvy_status cvy_plan_add_casts(const struct cvy_plan *plan, struct cvy_graph **g, bool is_training) {
    struct cvy_graph *cast = NULL;
    if (plan->low == CVY_F32)
        return CVY_OK;
    CVY_TRY(cvy_pass_cast(*g, plan->low, &cast));
    cvy_graph_free(*g);
    *g = cast;
    if (plan->low != CVY_F16 || !is_training)
        return CVY_OK;
    const struct cvy_desc desc = {CVY_F32, CVY_SHAPE(1)};
    cvy_value scale;
    return cvy_graph_host_input(*g, "loss_scale", &desc, false, &scale);
}

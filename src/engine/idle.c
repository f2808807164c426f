/* idle: parameters that the loss does not depend on. They have no gradient, so nothing is summed, waited for or
   updated: they keep their values (weight decay does not touch them), and lie in checkpoints as the others do. That
   may be a mistake in the graph, so it is said before the first step. */
#include "engine/plan.h"

static bool is_trained(const struct cvy_graph *g, cvy_value param) {
    for (size_t i = 0; i < g->reducibles.n; i++) {
        if (g->reducibles.data[i].kind == CVY_REDUCE_GRADIENT && g->reducibles.data[i].target == param)
            return true;
    }
    return false;
}

int cvy_plan_idle(const struct cvy_plan *plan, int most, struct cvy_text *names) {
    const struct cvy_graph *g = plan->train;
    int n = 0;
    for (size_t v = 0; g && v < g->values.n; v++) {
        const struct cvy_value_info *info = &g->values.data[v];
        if (info->kind != CVY_VALUE_PARAM || info->is_frozen || is_trained(g, (cvy_value)v))
            continue;
        if (n < most)
            cvy_text_printf(names, "%s%s", n ? ", " : "", info->name);
        n++;
    }
    if (n > most)
        cvy_text_printf(names, " and %d more", n - most);
    return n;
}

cvy_status cvy_plan_tell_idle(const struct cvy_plan *plan) {
    enum { N_NAMED = 12 }; /* a line can be read; `convoy explain` names all */
    struct cvy_text names = {0};
    int n = cvy_plan_idle(plan, N_NAMED, &names);
    cvy_status status = names.status;
    if (status == CVY_OK && n > 0)
        cvy_log(&plan->options.log, CVY_LOG_WARNING,
                "%d parameter%s: %s; the loss does not depend on %s, and %s", n,
                n == 1 ? " gets no gradient" : "s get no gradient", names.data, n == 1 ? "it" : "them",
                n == 1 ? "it stays as it is" : "they stay as they are");
    cvy_text_free(&names);
    return status;
}

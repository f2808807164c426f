/* freeze: parameters that keep their values. They get no gradient, so autodiff goes back only as far as the first
   layer that is trained, and nothing of them is reduced, updated or kept by the optimiser. As with requires_grad =
   False in PyTorch, a frozen batch-norm still normalises by its batch and moves its running statistics. */
#include "pass/pass.h"

#include <fnmatch.h>
#include <string.h>

static cvy_status freeze(struct cvy_graph *g, const char *pattern) {
    int n = 0;
    for (size_t v = 0; v < g->values.n; v++) {
        struct cvy_value_info *info = &g->values.data[v];
        if (info->kind == CVY_VALUE_PARAM && fnmatch(pattern, info->name, 0) == 0) {
            info->is_frozen = true;
            n++;
        }
    }
    if (n == 0)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "freeze '%s': no parameter has such a name; their names are torchvision's", pattern);
    return CVY_OK;
}

cvy_status cvy_pass_freeze(struct cvy_graph *g, const char *patterns) {
    const char *at = patterns;
    while (*at) {
        size_t n = strcspn(at, ",");
        char *pattern;
        CVY_TRY(cvy_pool_printf(&g->pool, &pattern, "%.*s", (int)n, at));
        CVY_TRY(freeze(g, pattern));
        at += n + (at[n] == ',');
    }
    for (size_t v = 0; v < g->values.n; v++) {
        if (g->values.data[v].kind == CVY_VALUE_PARAM && !g->values.data[v].is_frozen)
            return CVY_OK;
    }
    return CVY_FAIL(CVY_ERR_USAGE, "freeze '%s': every parameter is frozen, nothing is left to train",
                    patterns);
}

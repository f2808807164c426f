/* The optimiser of a plan: its operator by name, and its attributes, once for each group of parameters. In their text
   norm_weight_decay and bias_weight_decay stand for the weight_decay of those groups; a group without goes with the
   rest. */
#include "engine/plan.h"

#include <stdlib.h>
#include <string.h>

static cvy_status find_optimizer(const char *name, const struct cvy_op **out) {
    const char *names[64];
    size_t n, n_names = 0;
    const struct cvy_op *const *table = cvy_op_table(&n);
    *out = NULL;
    for (size_t i = 0; i < n; i++) {
        if ((table[i]->flags & CVY_OP_OPTIMIZER) && n_names < 64)
            names[n_names++] = table[i]->name;
        if ((table[i]->flags & CVY_OP_OPTIMIZER) && strcmp(table[i]->name, name) == 0)
            *out = table[i];
    }
    if (*out)
        return CVY_OK;
    char suggestion[CVY_SUGGESTION];
    return CVY_FAIL(CVY_ERR_USAGE, "no optimizer '%s'%s; `convoy train --help` lists them", name,
                    cvy_suggest(suggestion, name, names, n_names));
}

static const char *const prefixes[CVY_N_DECAYS] = {[CVY_DECAY_NORM] = "norm_", [CVY_DECAY_BIAS] = "bias_"};

/* Which group's attribute "norm_weight_decay=0" is; *rest is "weight_decay=0". */
static enum cvy_decay group_of(const char *item, const char **rest) {
    for (enum cvy_decay k = CVY_DECAY_NORM; k < CVY_N_DECAYS; k++) {
        size_t n = strlen(prefixes[k]);
        *rest = item + n;
        if (strncmp(item, prefixes[k], n) == 0 && strncmp(item + n, "weight_decay=", 13) == 0)
            return k;
    }
    *rest = item;
    return CVY_DECAY_OTHER;
}

static cvy_status split(const char *attributes, struct cvy_text text[CVY_N_DECAYS]) {
    char *copy = strdup(attributes), *at, *rest;
    if (!copy)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory for the optimiser's attributes");
    for (char *item = strtok_r(copy, " \t", &at); item; item = strtok_r(NULL, " \t", &at)) {
        enum cvy_decay k = group_of(item, (const char **)&rest);
        cvy_text_printf(&text[k], "%s%s", text[k].n ? " " : "", rest);
    }
    free(copy);
    return CVY_OK;
}

cvy_status cvy_plan_optimizer(struct cvy_plan *plan, struct cvy_update_options *update) {
    struct cvy_text text[CVY_N_DECAYS] = {{0}};
    const char *attributes = plan->options.optimizer_attributes;
    cvy_status status;
    CVY_TRY_OUT(find_optimizer(plan->options.optimizer, &update->optimizer));
    CVY_TRY_OUT(split(attributes ? attributes : "", text));
    for (int k = 0; k < CVY_N_DECAYS; k++) {
        void *attrs;
        CVY_TRY_OUT(text[k].status);
        if (k != CVY_DECAY_OTHER && !text[k].data)
            continue;
        CVY_TRY_OUT(cvy_pool_alloc(&plan->pool, update->optimizer->attrs_size, &attrs));
        cvy_attrs_default(update->optimizer, attrs);
        for (int of = 0; of <= k; of += k ? k : 1) { /* the common ones, then the group's own */
            if (text[of].data)
                CVY_TRY_OUT(cvy_attrs_parse(update->optimizer, text[of].data, attrs));
        }
        update->attrs[k] = attrs;
    }
out:
    for (int k = 0; k < CVY_N_DECAYS; k++)
        cvy_text_free(&text[k]);
    return status;
}

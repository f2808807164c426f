/* The table of strategies. */
#include "strategy/strategy.h"

#include <string.h>

#define CVY_STRATEGY(name) extern const struct cvy_strategy cvy_strategy_##name;
#include "strategy/strategies.def"
#undef CVY_STRATEGY

static const struct cvy_strategy *const table[] = {
#define CVY_STRATEGY(name) &cvy_strategy_##name,
#include "strategy/strategies.def"
#undef CVY_STRATEGY
};

const struct cvy_strategy *const *cvy_strategy_table(size_t *n) {
    *n = sizeof table / sizeof *table;
    return table;
}

const struct cvy_strategy *cvy_strategy_find(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    }
    return NULL;
}

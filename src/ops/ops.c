/* The table of operators, read from ops.def. */
#include "graph/op.h"

#include <string.h>

#define CVY_OP(name) extern const struct cvy_op cvy_op_##name;
#include "ops/ops.def"
#undef CVY_OP

static const struct cvy_op *const table[] = {
#define CVY_OP(name) &cvy_op_##name,
#include "ops/ops.def"
#undef CVY_OP
};

const struct cvy_op *const *cvy_op_table(size_t *n) {
    *n = sizeof table / sizeof *table;
    return table;
}

const struct cvy_op *cvy_op_find(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i]->name, name) == 0) {
            return table[i];
        }
    }
    return NULL;
}

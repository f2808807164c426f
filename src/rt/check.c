/* Every conformance case of every operator, one after the other; each is run by check_case.c. */
#include "rt/check.h"
#include "rt/check_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const double default_tolerance = 1e-5;
/* TF32 rounds both factors of a product to 11 significant bits: each by at most 2^-11 of itself. */
static const double tf32_tolerance = 1e-3;

/* What comes out as bfloat16 is rounded to 8 significant bits: by at most 2^-8 of itself (3.9e-3), which a lone number
   may be, and a third of that in the mean over many. */
static const double bf16_tolerance = 4e-3;
static const double f16_tolerance = 6e-4; /* 11 bits: 2^-11 */

static double tolerance_of(const struct cvy_device *device, const struct cvy_op *op, const struct cvy_case *c,
                           cvy_dtype narrow) {
    if (narrow != CVY_F32)
        return narrow == CVY_BF16 ? bf16_tolerance : f16_tolerance;
    if (device->spec.allow_tf32 && op->flags & CVY_OP_PRODUCTS)
        return tf32_tolerance;
    return c->tolerance > 0 ? c->tolerance : default_tolerance;
}

static cvy_status check_case(struct cvy_device *device, const struct cvy_op *op, int index,
                             const struct cvy_check_what *what, const struct cvy_layout *layout,
                             XXH3_state_t *hash, struct cvy_check_table *table) {
    const struct cvy_case *c = &op->cases[index];
    struct cvy_check_result result = {.op = op, .case_index = index, .narrow = what->narrow};
    result.tolerance = tolerance_of(device, op, c, what->narrow);
    if (cvy_check_case(device, c, what->seed, layout, hash, &result) != CVY_OK) {
        strncpy(result.reason, cvy_error(), sizeof result.reason - 1);
        result.error = NAN;
    }
    table->n_failed += !result.has_passed;
    return cvy_vec_push(&table->results, result);
}

static bool is_wanted(const struct cvy_check_what *what, const struct cvy_op *op) {
    if (op->flags & (CVY_OP_COLLECTIVE | CVY_OP_VIEW) || (what->narrow != CVY_F32 && !op->narrow_in))
        return false;
    return !what->only || strcmp(what->only, op->name) == 0;
}

cvy_status cvy_check_run(struct cvy_device *device, const struct cvy_check_what *what,
                         struct cvy_check_table *out) {
    cvy_status status = CVY_OK;
    size_t n_ops;
    const struct cvy_op *const *ops = cvy_op_table(&n_ops);
    const struct cvy_layout *start = NULL;
    *out = (struct cvy_check_table){0};
    if (what->layout && !device->backend->layout_find(device, what->layout, &start))
        return CVY_FAIL(CVY_ERR_USAGE, "%s knows no layout %s", device->name, what->layout);
    XXH3_state_t *hash = XXH3_createState();
    if (!hash)
        return CVY_FAIL(CVY_ERR_MEMORY, "no memory for a hash");
    XXH3_64bits_reset(hash);
    for (size_t i = 0; i < n_ops; i++) {
        for (int k = 0; k < ops[i]->n_cases && is_wanted(what, ops[i]); k++)
            CVY_TRY_OUT(check_case(device, ops[i], k, what, start, hash, out));
    }
    out->bits = XXH3_64bits_digest(hash);
out:
    XXH3_freeState(hash);
    if (status != CVY_OK)
        cvy_check_free(out);
    return status;
}

void cvy_check_free(struct cvy_check_table *table) {
    cvy_vec_free(&table->results);
    table->n_failed = 0;
}

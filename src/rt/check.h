/* Does a backend compute what the operators' references say? Runs every conformance case of every operator on a
   device, in the layouts that its kernels choose, with fresh random inputs and outputs poisoned beforehand. */
#ifndef CVY_RT_CHECK_H
#define CVY_RT_CHECK_H

#include "base/vec.h"
#include "rt/backend.h"

struct cvy_check_result {
    const struct cvy_op *op;
    int case_index;   /* into op->cases */
    cvy_dtype narrow; /* of the inputs that op->narrow_in names; CVY_F32: as the case says */
    bool is_fallback; /* the reference kernel ran */
    bool has_passed;
    double error; /* the largest ||a-b|| / ||b|| of an output that is not private; NaN: not all was written */
    double tolerance;
    char reason[160]; /* why it could not run; "" when it ran */
};

struct cvy_check_table {
    CVY_VEC(struct cvy_check_result) results; /* in the order of the operators' table and their cases */
    int n_failed;
    uint64_t bits; /* xxh3 over all results: equal on two devices that compute the same bits */
};

/* Inputs of rank 4 lie in `layout` at first, as if an earlier operator had left them so. With a narrow type only
   operators that take it are checked. */
struct cvy_check_what {
    uint64_t seed;      /* of the inputs */
    const char *layout; /* NULL: plain */
    const char *only;   /* the name of one operator; NULL: all */
    cvy_dtype narrow;   /* CVY_BF16, CVY_F16: of the inputs in narrow_in; CVY_F32: as the cases say */
};

/* Fails only when a check cannot be carried out at all; wrong results stand in the table.
   Called by the device's owner, after `enter`. */
cvy_status cvy_check_run(struct cvy_device *device, const struct cvy_check_what *what,
                         struct cvy_check_table *out);
void cvy_check_free(struct cvy_check_table *table);

#endif

/* Conformance cases, ready to run: `convoy check` and the tests read an operator's cases through this. */
#ifndef CVY_OPS_CASES_H
#define CVY_OPS_CASES_H

#include "graph/op.h"

enum { CVY_CASE_MAX = 16 }; /* operands each way */

/* One case with its text parsed and its outputs inferred. */
struct cvy_case_call {
    void *attrs; /* owned */
    int n_in, n_out;
    struct cvy_desc in[CVY_CASE_MAX], out[CVY_CASE_MAX];
    bool is_absent[CVY_CASE_MAX]; /* inputs */
};
cvy_status cvy_case_open(const struct cvy_op *op, const struct cvy_case *c, struct cvy_case_call *out);
void cvy_case_close(struct cvy_case_call *call);

/* Draws input i, a function of (seed, i) alone: the case's own fill, else normal(0,1) for floats and 0 for
   integers. The values are exact in the input's type (f32 for narrower ones). */
void cvy_case_fill(const struct cvy_case *c, int i, const struct cvy_desc *desc, uint64_t seed,
                   double *values);

/* For the operators' fill functions. */
void cvy_fill_normal(int i, const struct cvy_desc *desc, uint64_t seed, double *values);
void cvy_fill_uniform(int i, const struct cvy_desc *desc, uint64_t seed, double low, double high,
                      double *values);
void cvy_fill_below(int i, const struct cvy_desc *desc, uint64_t seed, uint32_t n,
                    double *values); /* integers */

#endif

/* The operator's reference kernel as a backend kernel: widens plain inputs to doubles, calls
   op->reference, rounds to the outputs' types. For host-memory backends. All layouts plain; its doubles live
   in the scratch workspace, so run allocates nothing. */
#ifndef CVY_RT_FALLBACK_H
#define CVY_RT_FALLBACK_H

#include "rt/backend.h"

extern const struct cvy_kernel_impl cvy_fallback_kernel;

/* Plain values to doubles and back (round to nearest even). n elements. */
void cvy_widen(cvy_dtype dtype, const void *from, int64_t n, double *to);
void cvy_narrow(cvy_dtype dtype, const double *from, int64_t n, void *to);

#endif

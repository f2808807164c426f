/* One conformance case on one device; the inside of rt/check.h. */
#ifndef CVY_RT_CHECK_CASE_H
#define CVY_RT_CHECK_CASE_H

#include "rt/check.h"

struct XXH3_state_s; /* xxhash's */

/* Runs `test` of result->op, with inputs of type result->narrow, and fills in error, is_fallback, and has_passed by
   result->tolerance. The bytes of the results go into `hash`. Fails when it could not be run. Called by the device's
   owner. */
cvy_status cvy_check_case(struct cvy_device *device, const struct cvy_case *test, uint64_t seed,
                          const struct cvy_layout *layout, struct XXH3_state_s *hash,
                          struct cvy_check_result *result);

#endif

/* A device's memory: mapped once, every page touched before the first step. */
#ifndef CVY_CPU_ARENA_H
#define CVY_CPU_ARENA_H

#include "base/status.h"

/* n_bytes of zeros in huge pages where there are; each of n_threads touches its part.
   *touch_s: seconds spent in touching. Called by the device's thread. */
cvy_status cpu_arena_map(size_t n_bytes, int n_threads, void **out, double *touch_s);
void cpu_arena_unmap(void *memory, size_t n_bytes);

#endif

/* The device's team of threads: that of libgomp, which oneDNN uses too, so that there is one per device. */
#ifndef CVY_CPU_TEAM_H
#define CVY_CPU_TEAM_H

#include <stdint.h>

/* Part `part` of n_parts of some work. */
typedef void (*cpu_body)(void *context, int part, int n_parts);

/* Makes T threads the size of the calling thread's team, for oneDNN as well. Once, in the device's thread, before
   its first parallel region. */
void cpu_team_size(int n_threads);

/* Runs body for parts 0 .. n_parts - 1 and waits. Which thread runs a part is open; what a part is must depend on
   n_parts alone, and n_parts on T: so the bits do not depend on the threads there are. Called by the device's
   thread. */
void cpu_team_run(int n_parts, cpu_body body, void *context);

/* The parts that a pass over so many elements is worth, where its bits do not depend on them: T, or 1 where waking the
   team takes longer than the work. (None in between: libgomp would end the threads that are left over.) */
static inline int cpu_team_parts(int64_t n_elements, int n_threads) {
    enum { SMALL = 4096 };
    return n_elements < SMALL ? 1 : n_threads;
}

/* The part of `n` items (in multiples of `grain`, but for the end) that falls to `part`. */
static inline void cpu_part(int64_t n, int64_t grain, int part, int n_parts, int64_t *first, int64_t *end) {
    int64_t n_grains = (n + grain - 1) / grain;
    int64_t from = n_grains * part / n_parts * grain, to = n_grains * (part + 1) / n_parts * grain;
    *first = from < n ? from : n;
    *end = to < n ? to : n;
}

#endif

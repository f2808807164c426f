/* What the main threads of a run's processes say to each other: small things, in step. The devices' own groups are
   in groups.c. Every function takes the world that cvy_plan_options names; NULL, or a world of one, has nothing to
   exchange. */
#ifndef CVY_ENGINE_WORLD_H
#define CVY_ENGINE_WORLD_H

#include "rt/comm.h"

/* bytes of process `root` to all. Collective. */
cvy_status cvy_world_broadcast(cvy_world *world, int root, void *bytes, size_t n_bytes, const char *name);

/* Each process fills its own part of `all`, n_bytes at rank * n_bytes; afterwards all have all parts. Collective. */
cvy_status cvy_world_gather(cvy_world *world, void *all, size_t n_bytes, const char *name);

/* *value becomes the largest of all processes' values. Collective. */
cvy_status cvy_world_max(cvy_world *world, int64_t *value, const char *name);

/* Have all processes the same `text`, lines that each tell one fact? If not, CVY_ERR_USAGE in all of them: the first
   line that differs, and where. Collective. */
cvy_status cvy_world_agree(cvy_world *world, const char *text, const char *name);

/* All processes fail alike when one did: with the error of the lowest rank that has one, which must not have left
   anybody waiting. Collective. */
cvy_status cvy_world_share_failure(cvy_world *world, cvy_status status, const char *name);

/* Each process does its work, rank 0 alone and first, the others together after it, whether it succeeded or not: what
   it leaves behind (an index of a folder) need not be made again where they see it. Returns the process's own result.
   The work runs in another thread; deadlines do not count it. Collective. */
cvy_status cvy_world_in_turn(cvy_world *world, cvy_status (*work)(void *context), void *context,
                             const char *name);

/* Where each process has checked for itself: if all failed, each keeps its own error and nobody waits; if some did,
   they keep theirs and the others get CVY_ERR_LOST with the first of them. Collective. */
cvy_status cvy_world_meet_failure(cvy_world *world, cvy_status status, const char *name);

#endif

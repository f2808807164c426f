/* A pool of worker threads that prepare the samples of an epoch in order, a bounded number of batches ahead of the
   caller. Knows positions 0 .. n-1 and batches of them, nothing of images.
   One thread, the owner, calls everything here; `run` is called by the workers. A pool may serve several jobs in
   turn, and be held by as many. */
#ifndef CVY_DATA_PREFETCH_H
#define CVY_DATA_PREFETCH_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { CVY_PREFETCH_SLOTS = 3 }; /* most batches in flight: the owner's and two ahead */

struct cvy_prefetch;

struct cvy_prefetch_job {
    int64_t n;           /* positions */
    int64_t first_batch; /* those before it are left out */
    int64_t batch_size;
    int n_slots; /* batches in flight, with the one that the owner holds; 2 to CVY_PREFETCH_SLOTS */
    /* Prepares one position; batch b may be written to the memory of batch b - n_slots. */
    cvy_status (*run)(void *context, int worker, int64_t position);
    /* Returns the error which says that the worker has been at this position for so long. */
    cvy_status (*fail_late)(void *context, int worker, int64_t position, double seconds);
    void *context; /* one for each that holds the pool */
};

/* The first holder is the caller. n_workers: at least 1. */
cvy_status cvy_prefetch_new(int n_workers, struct cvy_prefetch **out);
/* One more holder. */
void cvy_prefetch_hold(struct cvy_prefetch *prefetch);
/* The holder of `context` leaves: no worker is at its job any more. The last one ends the workers. False: one of them
   does not come back from what it reads, and may yet touch whatever `run` uses: that must be left as it is for ever. */
bool cvy_prefetch_leave(struct cvy_prefetch *prefetch, const void *context);

/* How long a worker may be at one position; two minutes until it is set. */
void cvy_prefetch_set_deadline(struct cvy_prefetch *prefetch, double seconds);

/* No worker runs, nor will one until the next start: the owner may change what `run` reads. Fails as wait does. */
cvy_status cvy_prefetch_stop(struct cvy_prefetch *prefetch);
/* Instead of what they were at. */
cvy_status cvy_prefetch_start(struct cvy_prefetch *prefetch, const struct cvy_prefetch_job *job);
/* Is the newest job this holder's? */
bool cvy_prefetch_serves(const struct cvy_prefetch *prefetch, const void *context);

/* Waits for batch b; the batches before it are given back. The error is that of the first position that
   failed, whatever the workers' order; or fail_late's when a worker is past the deadline, from then on for ever. */
cvy_status cvy_prefetch_wait(struct cvy_prefetch *prefetch, int64_t b);

#endif

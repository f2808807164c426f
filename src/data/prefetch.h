/* Worker threads that prepare the samples of an epoch in order, a bounded number of batches ahead of the
   caller. Knows positions 0 .. n-1 and batches of them, nothing of images.
   One thread, the owner, calls everything here; `run` is called by the workers. */
#ifndef CVY_DATA_PREFETCH_H
#define CVY_DATA_PREFETCH_H

#include "base/status.h"

#include <stdint.h>

struct cvy_prefetch;

struct cvy_prefetch_spec {
    int n_workers; /* at least 1 */
    int n_slots;   /* batches in flight, with the one that the owner holds; at least 2 */
    int64_t batch_size;
    /* Prepares the positions first .. first + n - 1, all of one batch; batch b may be written to the memory of
       batch b - n_slots. On failure *failed is the position that failed. */
    cvy_status (*run)(void *context, int worker, int64_t first, int64_t n, int64_t *failed);
    void *context;
};

cvy_status cvy_prefetch_new(const struct cvy_prefetch_spec *spec, struct cvy_prefetch **out);
/* Ends the workers; waits for what they are doing. */
void cvy_prefetch_free(struct cvy_prefetch *prefetch);

/* No worker runs, nor will one until the next start: the owner may change what `run` reads. */
void cvy_prefetch_stop(struct cvy_prefetch *prefetch);
void cvy_prefetch_start(struct cvy_prefetch *prefetch, int64_t n);

/* Waits for batch b; the batches before it are given back. The error is that of the first position that
   failed, whatever the workers' order. CVY_ERR_LOST when no worker finished anything for two minutes. */
cvy_status cvy_prefetch_wait(struct cvy_prefetch *prefetch, int64_t b);

#endif

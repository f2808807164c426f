/* The largest batch that fits the devices' memory, from plans alone: nothing is allocated or run. */
#ifndef CVY_ENGINE_LARGEST_BATCH_H
#define CVY_ENGINE_LARGEST_BATCH_H

#include "engine/task.h"

struct cvy_largest_batch {
    int64_t batch;  /* a multiple of `shards`, unless the training set is smaller than that */
    int64_t shards; /* S */
    int64_t limit;  /* bytes that a device may take, the same for all */
    int64_t bytes,
        more;      /* that the largest device takes with it; and with S images more; 0: there are no more */
    bool is_given; /* the limit is options.plan.device_memory, else its part of the memory that is free */
};

/* Of a training with these options but for the size of the batch, at most the training set and `most`. Without
   device_memory a device gets its part of four fifths of what its machine has free: the loader and the libraries take
   some, too. CVY_ERR_USAGE: not even the smallest batch fits, or the memory of such devices is not known. Every process
   gets the same. Collective. */
cvy_status cvy_task_largest_batch(const struct cvy_task_options *options, int64_t most,
                                  struct cvy_largest_batch *out);

#endif

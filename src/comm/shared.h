/* Memory that two processes of one machine share, for the places of a lane (lane.h). One end makes it, an anonymous
   file that ends with its process; the other opens it through /proc. A private part of the transports between
   processes. */
#ifndef CVY_COMM_SHARED_H
#define CVY_COMM_SHARED_H

#include "base/mem.h"

#include <stdbool.h>

struct cvy_shared_name { /* how the other process finds it */
    int32_t pid, file;   /* pid 0: there is none */
    uint64_t inode;      /* so that it is no other file, should that one be gone */
};

struct cvy_shared_counts { /* stands at the head of the memory; each on a cache line of its own */
    _Alignas(CVY_ALIGN) _Atomic uint64_t asked;    /* written by the asker */
    _Alignas(CVY_ALIGN) _Atomic uint64_t answered; /* by the other */
};

struct cvy_shared { /* zero-initialised: none */
    struct cvy_shared_counts *counts;
    unsigned char *places;
    size_t n_bytes; /* of both */
    int file;
};

/* Memory for n_bytes of places; all of it is there afterwards. False when the system has none to share. */
bool cvy_shared_make(struct cvy_shared *shared, size_t n_bytes, struct cvy_shared_name *name);
/* The other end. False when it cannot be reached. */
bool cvy_shared_open(struct cvy_shared *shared, size_t n_bytes, const struct cvy_shared_name *name);
void cvy_shared_free(struct cvy_shared *shared);

#endif

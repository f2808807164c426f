/* How the threads of members reach the thread that moves messages between processes. */
#ifndef CVY_COMM_BELL_H
#define CVY_COMM_BELL_H

#include "base/thread.h"

struct cvy_bell {
    struct cvy_counter rings; /* there is something new to do */
    _Atomic int32_t
        n_waiting; /* members that cannot go on without another process: then it looks more often */
};

#endif

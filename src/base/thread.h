/* Threads and waits. Every wait has a name and a deadline: nothing hangs. */
#ifndef CVY_BASE_THREAD_H
#define CVY_BASE_THREAD_H

#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Monotonic time. */
int64_t cvy_now_ns(void);

/* A counter that threads wait on until it reaches a value. Spins for a few microseconds, then sleeps.
   Advancing releases, waiting acquires. */
struct cvy_counter {
    _Atomic uint64_t value;
    _Atomic int n_waiting;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};
cvy_status cvy_counter_init(struct cvy_counter *counter);
void cvy_counter_free(struct cvy_counter *counter);
void cvy_counter_add(struct cvy_counter *counter, uint64_t n);
/* Waits until value >= target. CVY_ERR_LOST with the message "NAME: waited S seconds …" at the deadline;
   returns CVY_ERR_LOST at once when *cancel becomes true (cancel may be NULL; whoever sets it must call
   cvy_counter_wake). */
cvy_status cvy_counter_wait(struct cvy_counter *counter, uint64_t target, double timeout_s,
                            const _Atomic bool *cancel, const char *name);
/* Sleeps until value >= target, or for so long. No error, and no spinning: for threads that look after things. */
void cvy_counter_nap(struct cvy_counter *counter, uint64_t target, int64_t ns);
void cvy_counter_wake(struct cvy_counter *counter);

/* pthread_create with a name (up to 15 characters) and a checked status. */
cvy_status cvy_thread_start(pthread_t *thread, const char *name, void *(*main)(void *), void *argument);

#endif

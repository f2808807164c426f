/* For the tests of the control connection: one process of a run, and what it was told. */
#ifndef CVY_COMM_CONTROL_PROCESSES_H
#define CVY_COMM_CONTROL_PROCESSES_H

#include "base/thread.h"
#include "comm/control.h"
#include "cvy_test.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { MAX_RANKS = 5, PATIENCE_S = 30 };

/* What a process was told. */
struct ears {
    pthread_mutex_t lock;
    int n;
    int32_t group[8];
    char reason[8][1024];
};

struct process {
    int rank, size;
    struct cvy_control *control;
    struct ears ears;
    struct cvy_error error; /* of its start */
};

static inline void hear(void *context, int32_t group, const char *reason) {
    struct ears *ears = context;
    pthread_mutex_lock(&ears->lock);
    if (ears->n < 8) {
        ears->group[ears->n] = group;
        snprintf(ears->reason[ears->n], sizeof ears->reason[0], "%s", reason);
        ears->n++;
    }
    pthread_mutex_unlock(&ears->lock);
}

static inline int n_heard(struct process *me) {
    pthread_mutex_lock(&me->ears.lock);
    int n = me->ears.n;
    pthread_mutex_unlock(&me->ears.lock);
    return n;
}

/* Waits for the n-th event. */
static inline bool heard(struct process *me, int n) {
    int64_t until = cvy_now_ns() + (int64_t)PATIENCE_S * 1000000000;
    while (n_heard(me) < n && cvy_now_ns() < until)
        poll(NULL, 0, 2);
    return n_heard(me) >= n;
}

static inline void pause_s(double seconds) { poll(NULL, 0, (int)(seconds * 1000)); }

/* Connects (rank 0 listens already) and starts. */
static inline cvy_status begin(struct process *me, double timeout_s, const char *address) {
    pthread_mutex_init(&me->ears.lock, NULL);
    if (!me->control)
        CVY_TRY(cvy_control_connect(me->rank, me->size, timeout_s, address, &me->control));
    return cvy_control_start(me->control,
                             &(struct cvy_control_events){.context = &me->ears, .abandoned = hear});
}

/* The same as a thread, whose status is in `error`. */
struct job {
    struct process *me;
    double timeout_s;
    const char *address;
};

static inline void *begin_main(void *argument) {
    struct job *job = argument;
    cvy_error_save(&job->me->error, begin(job->me, job->timeout_s, job->address));
    return NULL;
}

#endif

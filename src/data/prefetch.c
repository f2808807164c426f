/* One lock guards everything; workers hold it only to take a task or to report one. A task is a few
   neighbouring positions of one batch.
   Invariants: tasks are taken in order of position; a task of batch b is taken only when b < n_given_back +
   n_slots, so slot b % n_slots is free; a slot's n_left counts the positions of its batch not yet reported. */
#include "data/prefetch.h"

#include "base/mem.h"
#include "base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TASK_SAMPLES = 8, STALL_S = 120 };

struct slot {
    int64_t n_left;
    int64_t failed; /* first position that failed; INT64_MAX: none */
    struct cvy_error error;
};

struct worker {
    struct cvy_prefetch *prefetch;
    int index;
    pthread_t thread;
};

struct cvy_prefetch {
    struct cvy_prefetch_spec spec;
    pthread_mutex_t lock;
    pthread_cond_t work, done; /* workers wait for work, the owner for done */
    int64_t n;                 /* positions of this epoch; 0: stopped */
    int64_t next;              /* first position not taken */
    int64_t n_given_back;      /* batches */
    uint64_t n_reports;        /* tasks finished ever: shows progress */
    int n_busy;
    bool is_ending;
    struct slot *slots;
    struct worker *workers;
    int n_started;
};

static struct slot *slot_of(struct cvy_prefetch *p, int64_t batch) {
    return &p->slots[batch % p->spec.n_slots];
}

/* Takes the next task, if there is one that may be begun. Holding the lock. */
static bool take(struct cvy_prefetch *p, int64_t *first, int64_t *n) {
    int64_t batch = p->next / p->spec.batch_size;
    if (p->next >= p->n || batch >= p->n_given_back + p->spec.n_slots)
        return false;
    int64_t begin = batch * p->spec.batch_size, end = begin + p->spec.batch_size;
    end = end > p->n ? p->n : end;
    if (p->next == begin) {
        slot_of(p, batch)->n_left = end - begin;
        slot_of(p, batch)->failed = INT64_MAX;
    }
    *first = p->next;
    *n = end - p->next < TASK_SAMPLES ? end - p->next : TASK_SAMPLES;
    p->next += *n;
    return true;
}

/* Holding the lock. */
static void report(struct cvy_prefetch *p, int64_t first, int64_t n, cvy_status status, int64_t failed) {
    struct slot *slot = slot_of(p, first / p->spec.batch_size);
    if (status != CVY_OK && failed < slot->failed) {
        slot->failed = failed;
        cvy_error_save(&slot->error, status);
    }
    slot->n_left -= n;
    p->n_reports++;
    pthread_cond_signal(&p->done);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    struct cvy_prefetch *p = worker->prefetch;
    int64_t first, n;
    pthread_mutex_lock(&p->lock);
    while (!p->is_ending) {
        if (!take(p, &first, &n)) {
            pthread_cond_wait(&p->work, &p->lock); /* the owner ends it: no deadline */
            continue;
        }
        p->n_busy++;
        pthread_mutex_unlock(&p->lock);
        int64_t failed = first;
        cvy_status status = p->spec.run(p->spec.context, worker->index, first, n, &failed);
        pthread_mutex_lock(&p->lock);
        p->n_busy--;
        report(p, first, n, status, failed);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static cvy_status init_locks(struct cvy_prefetch *p) {
    pthread_condattr_t attr;
    int error = pthread_condattr_init(&attr);
    if (error)
        return CVY_FAIL(CVY_ERR_FAILED, "loader: cannot make a condition variable: %s", strerror(error));
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->lock, NULL); /* these three cannot fail with glibc */
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, &attr);
    pthread_condattr_destroy(&attr);
    return CVY_OK;
}

cvy_status cvy_prefetch_new(const struct cvy_prefetch_spec *spec, struct cvy_prefetch **out) {
    struct cvy_prefetch *p;
    CVY_TRY(CVY_ALLOC(p, 1));
    p->spec = *spec;
    cvy_status status = init_locks(p);
    if (status != CVY_OK) {
        free(p);
        return status;
    }
    CVY_TRY_OUT(CVY_ALLOC(p->slots, (size_t)spec->n_slots));
    CVY_TRY_OUT(CVY_ALLOC(p->workers, (size_t)spec->n_workers));
    for (int i = 0; i < spec->n_workers; i++) {
        p->workers[i] = (struct worker){.prefetch = p, .index = i};
        CVY_TRY_OUT(cvy_thread_start(&p->workers[i].thread, "cvy-loader", work, &p->workers[i]));
        p->n_started++;
    }
    *out = p;
    return CVY_OK;
out:
    cvy_prefetch_free(p);
    return status;
}

void cvy_prefetch_free(struct cvy_prefetch *p) {
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->is_ending = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_started; i++)
        pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p->workers);
    free(p->slots);
    free(p);
}

void cvy_prefetch_stop(struct cvy_prefetch *p) {
    pthread_mutex_lock(&p->lock);
    p->n = 0;
    while (p->n_busy > 0) /* at most a task's time */
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

void cvy_prefetch_start(struct cvy_prefetch *p, int64_t n) {
    cvy_prefetch_stop(p);
    pthread_mutex_lock(&p->lock);
    p->n = n;
    p->next = p->n_given_back = 0;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
}

/* Waits until the batch is whole. Holding the lock. */
static cvy_status wait_whole(struct cvy_prefetch *p, int64_t b) {
    while (p->next <= b * p->spec.batch_size || slot_of(p, b)->n_left > 0) {
        uint64_t n_reports = p->n_reports;
        struct timespec deadline;
        clock_gettime(CLOCK_MONOTONIC, &deadline);
        deadline.tv_sec += STALL_S;
        int error = pthread_cond_timedwait(&p->done, &p->lock, &deadline);
        if (error == ETIMEDOUT && n_reports == p->n_reports)
            return CVY_FAIL(CVY_ERR_LOST,
                            "loader: no image was read for %d seconds (batch %lld): does the disk or "
                            "network drive still answer?",
                            STALL_S, (long long)b);
    }
    return CVY_OK;
}

cvy_status cvy_prefetch_wait(struct cvy_prefetch *p, int64_t b) {
    pthread_mutex_lock(&p->lock);
    if (b > p->n_given_back) {
        p->n_given_back = b;
        pthread_cond_broadcast(&p->work);
    }
    cvy_status status = wait_whole(p, b);
    if (status == CVY_OK && slot_of(p, b)->failed != INT64_MAX)
        status = cvy_error_restore(&slot_of(p, b)->error);
    pthread_mutex_unlock(&p->lock);
    return status;
}

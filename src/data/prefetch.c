/* One lock guards everything but what a worker is at; workers hold it only to take a task or to report one. A task is
   a few neighbouring positions of one batch.
   Invariants: tasks are taken in order of position; a task of batch b is taken only when b < n_given_back +
   n_slots, so slot b % n_slots is free; a slot's n_left counts the positions of its batch not yet reported; the job
   changes only while no worker is busy. */
#include "data/prefetch.h"

#include "base/mem.h"
#include "base/thread.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TASK_SAMPLES = 8, DEADLINE_S = 120 };
/* The owner looks at the workers so often within a deadline. Looks are counted, not time: a process that was stopped
   for an hour has not waited for an hour. */
enum { N_LOOKS = 8 };

struct slot {
    int64_t n_left;
    int64_t failed; /* first position that failed; INT64_MAX: none */
    struct cvy_error error;
};

struct worker {
    struct cvy_prefetch *prefetch;
    int index;
    pthread_t thread;
    _Atomic int64_t position; /* that it is at; -1: at none */
    _Atomic uint64_t n_begun; /* positions ever */
    uint64_t n_seen;          /* n_begun at the owner's newest look */
    int n_looks;              /* since it was seen to begin this one */
};

struct cvy_prefetch {
    struct cvy_prefetch_job job; /* n is 0: stopped */
    pthread_mutex_t lock;
    pthread_cond_t work, done; /* workers wait for work, the owner for done */
    int64_t next;              /* first position not taken */
    int64_t n_given_back;      /* batches */
    int n_busy, n_alive;       /* workers */
    bool is_ending;
    double deadline_s;
    int64_t next_look_ns;
    bool is_late; /* a worker is: `late` says so */
    struct cvy_error late;
    struct slot slots[CVY_PREFETCH_SLOTS];
    struct worker *workers;
    int n_started, n_holders;
};

/* ---- the workers --------------------------------------------------------------------------------- */

static struct slot *slot_of(struct cvy_prefetch *p, int64_t batch) {
    return &p->slots[batch % p->job.n_slots];
}

/* Takes the next task, if there is one that may be begun. Holding the lock. */
static bool take(struct cvy_prefetch *p, int64_t *first, int64_t *n) {
    const struct cvy_prefetch_job *job = &p->job;
    if (p->next >= job->n || p->next / job->batch_size >= p->n_given_back + job->n_slots)
        return false;
    int64_t batch = p->next / job->batch_size, begin = batch * job->batch_size, end = begin + job->batch_size;
    end = end > job->n ? job->n : end;
    if (p->next == begin) {
        slot_of(p, batch)->n_left = end - begin;
        slot_of(p, batch)->failed = INT64_MAX;
    }
    *first = p->next;
    *n = end - p->next < TASK_SAMPLES ? end - p->next : TASK_SAMPLES;
    p->next += *n;
    return true;
}

/* On failure *failed is the position that failed. */
static cvy_status prepare(struct worker *worker, int64_t first, int64_t n, int64_t *failed) {
    const struct cvy_prefetch_job *job = &worker->prefetch->job;
    for (*failed = first; *failed < first + n; ++*failed) {
        atomic_store(&worker->position, *failed);
        atomic_fetch_add(&worker->n_begun, 1);
        CVY_TRY(job->run(job->context, worker->index, *failed));
    }
    return CVY_OK;
}

/* Holding the lock. */
static void report(struct cvy_prefetch *p, int64_t first, int64_t n, cvy_status status, int64_t failed) {
    struct slot *slot = slot_of(p, first / p->job.batch_size);
    if (status != CVY_OK && failed < slot->failed) {
        slot->failed = failed;
        cvy_error_save(&slot->error, status);
    }
    slot->n_left -= n;
    pthread_cond_signal(&p->done);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    struct cvy_prefetch *p = worker->prefetch;
    int64_t first, n, failed;
    pthread_mutex_lock(&p->lock);
    while (!p->is_ending) {
        if (!take(p, &first, &n)) {
            pthread_cond_wait(&p->work, &p->lock); /* the owner ends it: no deadline */
            continue;
        }
        p->n_busy++;
        pthread_mutex_unlock(&p->lock);
        cvy_status status = prepare(worker, first, n, &failed);
        pthread_mutex_lock(&p->lock);
        atomic_store(&worker->position, -1);
        p->n_busy--;
        report(p, first, n, status, failed);
    }
    p->n_alive--;
    pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- making and leaving -------------------------------------------------------------------------- */

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

cvy_status cvy_prefetch_new(int n_workers, struct cvy_prefetch **out) {
    struct cvy_prefetch *p;
    CVY_TRY(CVY_ALLOC(p, 1));
    p->n_holders = 1;
    p->deadline_s = DEADLINE_S;
    cvy_status status = init_locks(p);
    if (status != CVY_OK) {
        free(p);
        return status;
    }
    CVY_TRY_OUT(CVY_ALLOC(p->workers, (size_t)n_workers));
    for (int i = 0; i < n_workers; i++) {
        struct worker *worker = &p->workers[i];
        worker->prefetch = p;
        worker->index = i;
        atomic_store(&worker->position, -1);
        pthread_mutex_lock(&p->lock);
        p->n_alive++;
        pthread_mutex_unlock(&p->lock);
        status = cvy_thread_start(&worker->thread, "cvy-loader", work, worker);
        p->n_started += status == CVY_OK;
        if (status != CVY_OK) {
            pthread_mutex_lock(&p->lock);
            p->n_alive--;
            pthread_mutex_unlock(&p->lock);
            goto out;
        }
    }
    *out = p;
    return CVY_OK;
out:
    (void)cvy_prefetch_leave(p, NULL);
    return status;
}

void cvy_prefetch_hold(struct cvy_prefetch *p) { p->n_holders++; }

void cvy_prefetch_set_deadline(struct cvy_prefetch *p, double seconds) {
    p->deadline_s = seconds;
    p->next_look_ns = 0;
}

bool cvy_prefetch_serves(const struct cvy_prefetch *p, const void *context) {
    return p->job.context == context;
}

static void free_all(struct cvy_prefetch *p) {
    for (int i = 0; i < p->n_started; i++)
        pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p->workers);
    free(p);
}

/* ---- waits of the owner -------------------------------------------------------------------------- */

/* A worker that was at the same position all the time. Holding the lock. */
static struct worker *find_late(struct cvy_prefetch *p) {
    for (int i = 0; i < p->n_started; i++) {
        struct worker *worker = &p->workers[i];
        uint64_t n_begun = atomic_load(&worker->n_begun);
        bool is_same = atomic_load(&worker->position) >= 0 && n_begun == worker->n_seen;
        worker->n_seen = n_begun;
        worker->n_looks = is_same ? worker->n_looks + 1 : 0;
        if (worker->n_looks >= N_LOOKS)
            return worker;
    }
    return NULL;
}

/* Sleeps until a worker reports or it is time for a look. Holding the lock. */
static cvy_status nap(struct cvy_prefetch *p) {
    if (p->is_late)
        return cvy_error_restore(&p->late);
    int64_t look_ns = p->next_look_ns;
    struct timespec until = {.tv_sec = look_ns / 1000000000, .tv_nsec = look_ns % 1000000000};
    if (pthread_cond_timedwait(&p->done, &p->lock, &until) != ETIMEDOUT)
        return CVY_OK;
    p->next_look_ns = cvy_now_ns() + (int64_t)(p->deadline_s * 1e9 / N_LOOKS);
    const struct worker *late = find_late(p);
    if (!late)
        return CVY_OK;
    const struct cvy_prefetch_job *job = &p->job;
    cvy_error_save(&p->late,
                   job->fail_late(job->context, late->index, atomic_load(&late->position), p->deadline_s));
    p->is_late = true;
    return cvy_error_restore(&p->late);
}

/* Holding the lock. */
static cvy_status stop(struct cvy_prefetch *p) {
    p->job.n = 0;
    while (p->n_busy > 0) /* at most a task's time */
        CVY_TRY(nap(p));
    return CVY_OK;
}

cvy_status cvy_prefetch_stop(struct cvy_prefetch *p) {
    pthread_mutex_lock(&p->lock);
    cvy_status status = stop(p);
    pthread_mutex_unlock(&p->lock);
    return status;
}

cvy_status cvy_prefetch_start(struct cvy_prefetch *p, const struct cvy_prefetch_job *job) {
    pthread_mutex_lock(&p->lock);
    cvy_status status = stop(p);
    if (status == CVY_OK) {
        p->job = *job;
        p->next = job->first_batch * job->batch_size;
        p->n_given_back = job->first_batch;
        pthread_cond_broadcast(&p->work);
    }
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* Waits until the batch is whole. Holding the lock. */
static cvy_status wait_whole(struct cvy_prefetch *p, int64_t b) {
    while (p->next <= b * p->job.batch_size || slot_of(p, b)->n_left > 0)
        CVY_TRY(nap(p));
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

bool cvy_prefetch_leave(struct cvy_prefetch *p, const void *context) {
    struct cvy_error newest; /* the caller may be on its way out with it */
    if (!p)
        return true;
    cvy_error_save(&newest, CVY_OK);
    pthread_mutex_lock(&p->lock);
    bool is_last = --p->n_holders == 0, is_free = true;
    if (is_last) {
        p->is_ending = true;
        pthread_cond_broadcast(&p->work);
        while (p->n_alive > 0 && nap(p) == CVY_OK)
            ; /* each ends after its task */
        is_free = p->n_alive == 0;
    } else if (p->job.context == context) {
        is_free = stop(p) == CVY_OK;
        if (is_free)
            p->job.context = NULL;
    }
    for (int i = 0; is_last && !is_free && i < p->n_started; i++)
        pthread_detach(p->workers[i].thread);
    pthread_mutex_unlock(&p->lock);
    (void)cvy_error_restore(&newest);
    if (is_last && is_free)
        free_all(p);
    return is_free;
}

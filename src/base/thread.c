/* Monotonic time, the counter that threads wait on, thread creation.
   A waiter announces itself in n_waiting before it looks at the value for the last time, and whoever adds
   looks at n_waiting after it changed the value; both are sequentially consistent, so that one of them sees
   the other and no wake-up is lost, although adding without waiters takes no lock. */
#include "base/thread.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { SPIN_NS = 5000, PAUSES_PER_LOOK = 16 };

int64_t cvy_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

cvy_status cvy_counter_init(struct cvy_counter *counter) {
    atomic_init(&counter->value, 0);
    atomic_init(&counter->n_waiting, 0);
    pthread_condattr_t attr;
    int error = pthread_condattr_init(&attr);
    if (error)
        return CVY_FAIL(CVY_ERR_FAILED, "cannot make a condition variable: %s", strerror(error));
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    error = pthread_cond_init(&counter->changed, &attr);
    pthread_condattr_destroy(&attr);
    if (error)
        return CVY_FAIL(CVY_ERR_FAILED, "cannot make a condition variable: %s", strerror(error));
    error = pthread_mutex_init(&counter->lock, NULL);
    if (error) {
        pthread_cond_destroy(&counter->changed);
        return CVY_FAIL(CVY_ERR_FAILED, "cannot make a lock: %s", strerror(error));
    }
    return CVY_OK;
}

void cvy_counter_free(struct cvy_counter *counter) {
    pthread_mutex_destroy(&counter->lock);
    pthread_cond_destroy(&counter->changed);
}

void cvy_counter_wake(struct cvy_counter *counter) {
    if (atomic_load(&counter->n_waiting) == 0)
        return;
    pthread_mutex_lock(&counter->lock);
    pthread_cond_broadcast(&counter->changed);
    pthread_mutex_unlock(&counter->lock);
}

void cvy_counter_add(struct cvy_counter *counter, uint64_t n) {
    atomic_fetch_add(&counter->value, n);
    cvy_counter_wake(counter);
}

static inline void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool is_reached(struct cvy_counter *counter, uint64_t target) {
    return atomic_load(&counter->value) >= target;
}

static bool is_cancelled(const _Atomic bool *cancel) { return cancel && atomic_load(cancel); }

/* Sleeps until the value, the cancellation or the deadline comes; true when it was the deadline. */
static bool sleep_until(struct cvy_counter *counter, uint64_t target, const _Atomic bool *cancel,
                        int64_t deadline_ns) {
    const struct timespec deadline = {.tv_sec = deadline_ns / 1000000000,
                                      .tv_nsec = deadline_ns % 1000000000};
    bool is_late = false;
    pthread_mutex_lock(&counter->lock);
    atomic_fetch_add(&counter->n_waiting, 1);
    while (!is_reached(counter, target) && !is_cancelled(cancel) && !is_late)
        is_late = pthread_cond_timedwait(&counter->changed, &counter->lock, &deadline) == ETIMEDOUT;
    atomic_fetch_sub(&counter->n_waiting, 1);
    pthread_mutex_unlock(&counter->lock);
    return is_late;
}

cvy_status cvy_counter_wait(struct cvy_counter *counter, uint64_t target, double timeout_s,
                            const _Atomic bool *cancel, const char *name) {
    if (is_reached(counter, target))
        return CVY_OK;
    int64_t start = cvy_now_ns();
    while (cvy_now_ns() - start < SPIN_NS) {
        for (int i = 0; i < PAUSES_PER_LOOK; i++)
            pause_cpu();
        if (is_reached(counter, target))
            return CVY_OK;
    }
    double wait_s = timeout_s < 0 ? 0 : timeout_s < 1e9 ? timeout_s : 1e9; /* thirty years, and no overflow */
    int64_t deadline = start + (int64_t)(wait_s * 1e9);
    bool is_late = sleep_until(counter, target, cancel, deadline);
    if (is_reached(counter, target))
        return CVY_OK;
    return CVY_FAIL(CVY_ERR_LOST, "%s: waited %.1f seconds, then %s (%llu of %llu arrived)", name,
                    (double)(cvy_now_ns() - start) * 1e-9, is_late ? "gave up" : "was cancelled",
                    (unsigned long long)atomic_load(&counter->value), (unsigned long long)target);
}

void cvy_counter_nap(struct cvy_counter *counter, uint64_t target, int64_t ns) {
    if (!is_reached(counter, target))
        (void)sleep_until(counter, target, NULL, cvy_now_ns() + ns);
}

cvy_status cvy_thread_start(pthread_t *thread, const char *name, void *(*main)(void *), void *argument) {
    int error = pthread_create(thread, NULL, main, argument);
    if (error)
        return CVY_FAIL(CVY_ERR_FAILED, "cannot start the thread %s: %s", name, strerror(error));
    char short_name[16]; /* the kernel's limit */
    strncpy(short_name, name, sizeof short_name - 1);
    short_name[sizeof short_name - 1] = '\0';
    pthread_setname_np(*thread, short_name); /* for debuggers only: failing does not matter */
    return CVY_OK;
}

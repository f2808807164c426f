/* The control connection as its owner sees it. */
#include "comm/control_inner.h"

#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- making and freeing ------------------------------------------------------------------------------ */

static void control_free(struct cvy_control *control) {
    for (int i = 0; i < control->n_lines; i++)
        cvy_line_close(&control->lines[i]);
    if (control->listener >= 0)
        close(control->listener);
    if (control->wake_fd >= 0)
        close(control->wake_fd);
    cvy_counter_free(&control->here);
    pthread_mutex_destroy(&control->lock);
    pthread_mutex_destroy(&control->note_lock);
    cvy_vec_free(&control->abandoned);
    free(control->lines);
    free(control->fds);
    free(control);
}

static cvy_status make_room(struct cvy_control *control, int n_lines) {
    CVY_TRY(CVY_ALLOC(control->lines, (size_t)n_lines));
    CVY_TRY(CVY_ALLOC(control->fds, (size_t)n_lines + 2));
    for (int i = 0; i < n_lines; i++)
        control->lines[i].fd = -1;
    control->n_lines = n_lines;
    control->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (control->wake_fd < 0)
        return CVY_FAIL(CVY_ERR_IO, "the control connection gets no eventfd: %s", strerror(errno));
    return CVY_OK;
}

static cvy_status control_new(int rank, int size, double timeout_s, struct cvy_control **out) {
    struct cvy_control *control;
    if (rank < 0 || size < 1 || rank >= size || size > CVY_CONTROL_MAX_RANK)
        return CVY_FAIL(CVY_ERR_USAGE, "there is no rank %d among %d processes", rank, size);
    if (!(timeout_s > 0))
        return CVY_FAIL(CVY_ERR_USAGE, "a control connection needs a timeout above 0, not %g s", timeout_s);
    CVY_TRY(CVY_ALLOC(control, 1));
    control->rank = rank;
    control->size = size;
    control->timeout_s = timeout_s < 1e9 ? timeout_s : 1e9;
    double beat_s = control->timeout_s / 8;
    beat_s = beat_s < 0.05 ? 0.05 : beat_s > 2 ? 2 : beat_s;
    control->beat_ns = (int64_t)(beat_s * 1e9);
    control->limit_ns = (int64_t)(control->timeout_s * 0.75e9);
    control->listener = control->wake_fd = -1;
    cvy_status status = cvy_counter_init(&control->here);
    if (status != CVY_OK) {
        free(control);
        return status;
    }
    pthread_mutex_init(&control->lock, NULL); /* with default attributes these cannot fail */
    pthread_mutex_init(&control->note_lock, NULL);
    status = make_room(control, rank == 0 ? size - 1 + CVY_CONTROL_MAX_STRANGERS : 1);
    if (status != CVY_OK) {
        control_free(control);
        return status;
    }
    *out = control;
    return CVY_OK;
}

/* ---- meeting ----------------------------------------------------------------------------------------- */

cvy_status cvy_control_listen(int size, double timeout_s, char address[CVY_CONTROL_ADDRESS],
                              struct cvy_control **out) {
    struct cvy_control *control;
    CVY_TRY(control_new(0, size, timeout_s, &control));
    cvy_status status = cvy_control_open_listener(address, CVY_CONTROL_ADDRESS, &control->listener);
    if (status == CVY_OK) {
        memcpy(control->token, address, CVY_CONTROL_TOKEN);
        status = cvy_control_run_thread(control);
    }
    if (status != CVY_OK) {
        control_free(control);
        return status;
    }
    *out = control;
    return CVY_OK;
}

cvy_status cvy_control_connect(int rank, int size, double timeout_s, const char *address,
                               struct cvy_control **out) {
    struct cvy_control_places places;
    struct cvy_control *control;
    CVY_TRY(cvy_control_parse_places(address, &places));
    CVY_TRY(control_new(rank, size, timeout_s, &control));
    memcpy(control->token, places.token, sizeof control->token);
    cvy_status status = cvy_control_dial(control, &places);
    if (status != CVY_OK) {
        control_free(control);
        return status;
    }
    *out = control;
    return CVY_OK;
}

/* "rank 2, 5 and 7 more" of those that have not started. Under the lock. */
static void print_missing(const struct cvy_control *control, struct cvy_text *out) {
    enum { MOST = 8 };
    int n = 0;
    for (int rank = 1; rank < control->size; rank++) {
        bool is_here = false;
        for (int i = 0; i < control->n_lines && !is_here; i++)
            is_here = control->lines[i].state >= CVY_LINE_UP && control->lines[i].rank == rank;
        if (!is_here && n < MOST)
            cvy_text_printf(out, "%s%d", n ? ", " : "rank ", rank);
        n += !is_here;
    }
    if (n > MOST)
        cvy_text_printf(out, " and %d more", n - MOST);
}

/* Why not all have started, as this thread's error; tells the others, too, if nobody did. */
static cvy_status fail_start(struct cvy_control *control) {
    struct cvy_text why = {0};
    pthread_mutex_lock(&control->lock);
    bool is_over = atomic_load(&control->is_over);
    if (is_over) {
        cvy_text_printf(&why, "%s", control->reason);
    } else if (control->rank == 0) {
        print_missing(control, &why);
        cvy_text_printf(&why, " did not come within %.1f s", control->timeout_s);
        if (control->refused[0])
            cvy_text_printf(&why, " (%s)", control->refused);
    } else {
        cvy_text_printf(&why, "rank %d waited in vain for all processes to start", control->rank);
    }
    pthread_mutex_unlock(&control->lock);
    const char *reason = why.data ? why.data : "out of memory";
    if (!is_over)
        cvy_control_abandon(control, -1, reason);
    cvy_status status = CVY_FAIL(CVY_ERR_LOST, "%s", reason);
    cvy_text_free(&why);
    return status;
}

cvy_status cvy_control_start(struct cvy_control *control, const struct cvy_control_events *events) {
    pthread_mutex_lock(&control->lock);
    bool is_again = control->is_started;
    control->is_started = true;
    if (!is_again) {
        control->events = *events;
        if (control->rank != 0) {
            control->lines[0].state = CVY_LINE_UP;
            cvy_control_post(control, &control->lines[0], CVY_CONTROL_READY, "");
        }
    }
    pthread_mutex_unlock(&control->lock);
    if (is_again)
        return CVY_FAIL(CVY_ERR_USAGE, "a control connection starts once");
    if (!control->has_thread)
        CVY_TRY(cvy_control_run_thread(control));
    cvy_control_wake(control);
    /* rank 0 knows better who is missing: the others leave it the word */
    double wait_s = control->timeout_s * (control->rank == 0 ? 1 : 1.25);
    if (cvy_counter_wait(&control->here, 1, wait_s, &control->is_over, "control connection") == CVY_OK)
        return CVY_OK;
    return fail_start(control);
}

/* ---- running ----------------------------------------------------------------------------------------- */

void cvy_control_note(struct cvy_control *control, uint64_t sequence, const char *tag) {
    pthread_mutex_lock(&control->note_lock);
    control->sequence = sequence;
    cvy_text_line(control->tag, sizeof control->tag, tag);
    pthread_mutex_unlock(&control->note_lock);
}

void cvy_control_abandon(struct cvy_control *control, int32_t group, const char *reason) {
    const struct cvy_control_event event = {
        .is_own = true, .rank = control->rank, .group = group < 0 ? -1 : group, .reason = reason};
    cvy_control_tell(control, &event);
}

/* ---- leaving ----------------------------------------------------------------------------------------- */

void cvy_control_close(struct cvy_control *control) {
    if (!control)
        return;
    pthread_mutex_lock(&control->lock);
    double most_s = atomic_load(&control->is_over) ? cvy_control_push_s(control) : control->timeout_s;
    control->is_leaving = true;
    control->leave_by_ns = cvy_now_ns() + (int64_t)(most_s * 1e9);
    cvy_control_post_all(control, CVY_CONTROL_GOODBYE, "");
    if (!control->has_thread)
        cvy_control_push(control);
    pthread_mutex_unlock(&control->lock);
    if (control->has_thread) {
        cvy_control_wake(control);
        pthread_join(control->thread, NULL);
    }
    control_free(control);
}

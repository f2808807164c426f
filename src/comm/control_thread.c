/* The thread of a control connection: looks at all lines whenever one has something, and at least once a beat. */
#include "comm/control_inner.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const int64_t stranger_ns = 2000000000; /* to say hello */
static const int64_t drain_ns = 2000000;       /* between two looks at what the network has not taken yet */

enum { WAKE, LISTENER, LINES }; /* in fds */

void cvy_control_wake(struct cvy_control *control) { eventfd_write(control->wake_fd, 1); }

/* ---- others that end --------------------------------------------------------------------------------- */

static void close_line(struct cvy_control *control, struct cvy_line *line) {
    pthread_mutex_lock(&control->lock);
    cvy_line_close(line);
    pthread_mutex_unlock(&control->lock);
}

/* Is the end of this line no loss? The run is over, or one of the two said goodbye; but rank 0 hears out the others. */
static bool may_end(struct cvy_control *control, const struct cvy_line *line) {
    pthread_mutex_lock(&control->lock);
    bool may = line->state != CVY_LINE_UP || atomic_load(&control->is_over) ||
               (control->rank != 0 && control->is_leaving);
    pthread_mutex_unlock(&control->lock);
    return may;
}

/* No more will come on this line; error 0: its end. */
static void end_line(struct cvy_control *control, struct cvy_line *line, int error) {
    char how[128];
    if (may_end(control, line)) {
        close_line(control, line);
        return;
    }
    if (error == 0 || error == ECONNRESET || error == EPIPE)
        snprintf(how, sizeof how, "its process ended without a word (killed?)");
    else if (error == EPROTO)
        snprintf(how, sizeof how, "it sent what is no control message: another version?");
    else
        snprintf(how, sizeof how, "its connection broke (%s)", strerror(error));
    cvy_control_lose(control, line, false, how);
}

/* Nobody waits for any of them to take the news. */
static void lose_all(struct cvy_control *control) {
    pthread_mutex_lock(&control->lock);
    for (int i = 0; i < control->n_lines; i++) {
        if (control->lines[i].state == CVY_LINE_UP)
            control->lines[i].state = CVY_LINE_LOST;
    }
    pthread_mutex_unlock(&control->lock);
}

/* Is anybody silent for too long? Only the first is named, unless it is all of several: then it is rather this process
   that cannot hear. */
static void judge_silence(struct cvy_control *control) {
    struct cvy_line *silent = NULL;
    int n_up = 0, n_heard = 0;
    for (int i = 0; i < control->n_lines; i++) {
        struct cvy_line *line = &control->lines[i];
        if (line->state != CVY_LINE_UP)
            continue;
        int64_t silence = control->awake_ns - line->heard_ns;
        n_up++;
        n_heard += silence <= control->limit_ns / 2;
        if (silence >= control->limit_ns && (!silent || line->heard_ns < silent->heard_ns))
            silent = line;
    }
    if (!silent || may_end(control, silent))
        return;
    char how[128];
    double silence_s = (double)(control->awake_ns - silent->heard_ns) * 1e-9;
    if (n_up > 1 && n_heard == 0) {
        lose_all(control);
        snprintf(how, sizeof how,
                 "no sign of life for %.1f s, nor of any other: rank %d's own link may be cut", silence_s,
                 control->rank);
    } else {
        snprintf(how, sizeof how, "no sign of life for %.1f s (stopped, or its link is cut)", silence_s);
    }
    cvy_control_lose(control, silent, true, how);
}

static void drop_silent_strangers(struct cvy_control *control) {
    for (int i = 0; i < control->n_lines; i++) {
        struct cvy_line *line = &control->lines[i];
        if (line->state == CVY_LINE_STRANGER && control->looked_ns - line->since_ns > stranger_ns)
            close_line(control, line);
    }
}

/* ---- reading ----------------------------------------------------------------------------------------- */

static void hear_line(struct cvy_control *control, struct cvy_line *line) {
    struct cvy_control_message message;
    int found = 0;
    while (line->fd >= 0 && (found = cvy_line_next(line, &message)) > 0)
        cvy_control_hear(control, line, &message);
    if (line->fd >= 0 && found < 0)
        end_line(control, line, EPROTO);
}

static void read_line(struct cvy_control *control, struct cvy_line *line) {
    ssize_t n = cvy_line_read(line);
    int error = n < 0 ? errno : 0;
    if (error == EAGAIN || error == EWOULDBLOCK)
        return;
    if (n <= 0) {
        end_line(control, line, error);
        return;
    }
    line->heard_ns = control->awake_ns;
    hear_line(control, line);
}

static struct cvy_line *free_line(struct cvy_control *control) {
    for (int i = 0; i < control->n_lines; i++) {
        if (control->lines[i].fd < 0)
            return &control->lines[i];
    }
    return NULL;
}

static void accept_one(struct cvy_control *control) {
    struct cvy_line *line = free_line(control);
    if (!line)
        return;
    int fd = cvy_control_accept(control->listener);
    if (fd < 0) { /* too many open files, say: not again at once */
        control->next_accept_ns = control->looked_ns + control->beat_ns;
        return;
    }
    pthread_mutex_lock(&control->lock);
    cvy_line_open(line, fd, CVY_LINE_STRANGER, control->looked_ns);
    pthread_mutex_unlock(&control->lock);
}

/* ---- rounds ------------------------------------------------------------------------------------------ */

/* Rank 0: have all started? Then nobody else is expected. */
static void meet(struct cvy_control *control) {
    pthread_mutex_lock(&control->lock);
    bool is_now = control->rank == 0 && control->is_started && !control->is_met &&
                  !atomic_load(&control->is_over) && cvy_control_count_up(control) == control->size - 1;
    if (is_now) {
        control->is_met = true;
        cvy_control_post_all(control, CVY_CONTROL_ALL_HERE, "");
        close(control->listener);
        control->listener = -1;
    }
    pthread_mutex_unlock(&control->lock);
    if (is_now)
        cvy_counter_add(&control->here, 1);
}

static void beat(struct cvy_control *control) {
    if (control->looked_ns < control->next_beat_ns)
        return;
    control->next_beat_ns = control->looked_ns + control->beat_ns;
    struct cvy_control_message message = {.type = CVY_CONTROL_BEAT, .rank = control->rank};
    pthread_mutex_lock(&control->note_lock);
    message.sequence = control->sequence;
    memcpy(message.text, control->tag, sizeof control->tag);
    pthread_mutex_unlock(&control->note_lock);
    pthread_mutex_lock(&control->lock);
    for (int i = 0; i < control->n_lines; i++) {
        struct cvy_line *line = &control->lines[i];
        bool is_due = line->state == CVY_LINE_UP || (line->state == CVY_LINE_PARTED &&
                                                     control->rank != 0); /* rank 0 waits for our goodbye */
        if (is_due && line->unsent.n == 0)
            cvy_line_send(line, &message);
    }
    pthread_mutex_unlock(&control->lock);
}

/* Has the process said all it has to say? Rank 0 also hears all others out, unless the run is over. */
static bool is_done(struct cvy_control *control, bool *is_draining) {
    pthread_mutex_lock(&control->lock);
    bool waits = control->rank == 0 && control->is_met && !atomic_load(&control->is_over) &&
                 cvy_control_count_up(control) > 0;
    *is_draining = false;
    for (int i = 0; control->is_leaving && i < control->n_lines; i++) {
        const struct cvy_line *line = &control->lines[i];
        if (line->state != CVY_LINE_LOST && !cvy_line_is_drained(line))
            *is_draining = true;
    }
    bool is_done = control->is_leaving && ((!waits && !*is_draining) || cvy_now_ns() >= control->leave_by_ns);
    pthread_mutex_unlock(&control->lock);
    return is_done;
}

static void watch(struct cvy_control *control) {
    pthread_mutex_lock(&control->lock);
    bool accepts =
        control->listener >= 0 && control->looked_ns >= control->next_accept_ns && free_line(control);
    control->fds[WAKE] = (struct pollfd){.fd = control->wake_fd, .events = POLLIN};
    control->fds[LISTENER] = (struct pollfd){.fd = accepts ? control->listener : -1, .events = POLLIN};
    for (int i = 0; i < control->n_lines; i++) {
        const struct cvy_line *line = &control->lines[i];
        bool sends = line->unsent.n > 0 && !line->is_mute;
        control->fds[LINES + i] =
            (struct pollfd){.fd = line->fd, .events = (short)(POLLIN | (sends ? POLLOUT : 0))};
    }
    pthread_mutex_unlock(&control->lock);
}

/* Sleeps until something comes, a beat or a judgement is due, or after wait_ns; then advances the awake time. */
static void sleep_until_news(struct cvy_control *control, int64_t wait_ns) {
    int64_t to_beat = control->next_beat_ns - cvy_now_ns();
    wait_ns = to_beat < wait_ns ? to_beat : wait_ns;
    for (int i = 0; i < control->n_lines && !atomic_load(&control->is_over); i++) {
        const struct cvy_line *line = &control->lines[i];
        int64_t to_limit = line->heard_ns + control->limit_ns - control->awake_ns;
        if (line->state == CVY_LINE_UP && to_limit < wait_ns)
            wait_ns = to_limit;
    }
    wait_ns = wait_ns < 0 ? 0 : wait_ns;
    poll(control->fds, (nfds_t)(LINES + control->n_lines), (int)((wait_ns + 999999) / 1000000));
    int64_t now = cvy_now_ns(), passed = now - control->looked_ns, most = wait_ns + control->beat_ns;
    control->awake_ns += passed < most ? passed : most;
    control->looked_ns = now;
}

static void serve_line(struct cvy_control *control, struct cvy_line *line, short events) {
    if (events & POLLOUT) {
        pthread_mutex_lock(&control->lock);
        cvy_line_flush(line);
        pthread_mutex_unlock(&control->lock);
    }
    if (events & (POLLIN | POLLHUP | POLLERR))
        read_line(control, line);
}

static void *control_main(void *argument) {
    struct cvy_control *control = argument;
    bool is_draining = false;
    if (control->rank != 0)
        hear_line(control, &control->lines[0]); /* what came together with the welcome */
    while (!is_done(control, &is_draining)) {
        watch(control);
        sleep_until_news(control, is_draining ? drain_ns : control->beat_ns);
        if (control->fds[WAKE].revents) {
            eventfd_t n;
            eventfd_read(control->wake_fd, &n);
        }
        for (int i = 0; i < control->n_lines; i++)
            serve_line(control, &control->lines[i], control->fds[LINES + i].revents);
        if (control->fds[LISTENER].revents)
            accept_one(control);
        meet(control);
        judge_silence(control);
        drop_silent_strangers(control);
        beat(control);
    }
    return NULL;
}

cvy_status cvy_control_run_thread(struct cvy_control *control) {
    sigset_t all, before; /* signals are for the threads that wait for them */
    control->looked_ns = cvy_now_ns();
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    cvy_status status = cvy_thread_start(&control->thread, "cvy-control", control_main, control);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    control->has_thread = status == CVY_OK;
    return status;
}

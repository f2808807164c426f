/* What messages and losses mean: who is welcome, who gave up, and who is told. */
#include "comm/control_inner.h"

#include "base/text.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- sending ----------------------------------------------------------------------------------------- */

void cvy_control_post(struct cvy_control *control, struct cvy_line *line, enum cvy_control_type type,
                      const char *text) {
    struct cvy_control_message message = {.type = type, .rank = control->rank, .group = -1};
    cvy_text_line(message.text, sizeof message.text, text);
    cvy_line_send(line, &message);
}

/* Does the line lead to a process of this run that may still listen? Rank 0 passes on until it ends. */
static bool is_member(const struct cvy_control *control, const struct cvy_line *line) {
    return line->fd >= 0 && (line->state == CVY_LINE_WELCOMED || line->state == CVY_LINE_UP ||
                             line->state == CVY_LINE_LOST || control->rank != 0);
}

void cvy_control_post_all(struct cvy_control *control, enum cvy_control_type type, const char *text) {
    for (int i = 0; i < control->n_lines; i++) {
        if (is_member(control, &control->lines[i]))
            cvy_control_post(control, &control->lines[i], type, text);
    }
}

double cvy_control_push_s(const struct cvy_control *control) {
    return control->timeout_s / 8 < 0.25 ? control->timeout_s / 8 : 0.25;
}

void cvy_control_push(struct cvy_control *control) {
    int64_t until = cvy_now_ns() + (int64_t)(cvy_control_push_s(control) * 1e9);
    for (;;) {
        int n_waiting = 0;
        for (int i = 0; i < control->n_lines; i++) {
            struct cvy_line *line = &control->lines[i];
            if (line->fd < 0 || line->state == CVY_LINE_LOST)
                continue;
            cvy_line_flush(line);
            n_waiting += !cvy_line_is_drained(line);
        }
        if (n_waiting == 0 || cvy_now_ns() >= until)
            return;
        poll(NULL, 0, 1);
    }
}

int cvy_control_count_up(const struct cvy_control *control) {
    int n = 0;
    for (int i = 0; i < control->n_lines; i++)
        n += control->lines[i].state == CVY_LINE_UP;
    return n;
}

/* ---- events ------------------------------------------------------------------------------------------ */

/* The first that ends this group, and before the end of all? Keeps it. Under the lock. */
static bool is_news(struct cvy_control *control, const struct cvy_control_event *event) {
    if (atomic_load(&control->is_over))
        return false;
    if (event->group < 0) {
        cvy_text_line(control->reason, sizeof control->reason, event->reason);
        atomic_store(&control->is_over, true);
        return true;
    }
    for (size_t i = 0; i < control->abandoned.n; i++) {
        if (control->abandoned.data[i] == event->group)
            return false;
    }
    cvy_status status = cvy_vec_push(&control->abandoned, event->group);
    (void)status; /* without memory the same may be told twice */
    return true;
}

void cvy_control_tell(struct cvy_control *control, const struct cvy_control_event *event) {
    struct cvy_control_message message = {
        .type = CVY_CONTROL_ABANDON, .rank = event->rank, .group = event->group};
    cvy_text_line(message.text, sizeof message.text, event->reason);
    pthread_mutex_lock(&control->lock);
    bool is_new = is_news(control, event);
    if (is_new && (control->rank == 0 || event->is_own)) {
        for (int i = 0; i < control->n_lines; i++) {
            struct cvy_line *line = &control->lines[i];
            if (line != event->from && is_member(control, line))
                cvy_line_send(line, &message);
        }
    }
    bool is_told = is_new && !event->is_own && control->is_met; /* before, the owner learns it from start */
    pthread_mutex_unlock(&control->lock);
    if (is_new)
        cvy_counter_wake(&control->here);
    if (is_told)
        control->events.abandoned(control->events.context, event->group, message.text);
    if (is_new) { /* waits a little for those who do not take it: so it comes last */
        pthread_mutex_lock(&control->lock);
        cvy_control_push(control);
        pthread_mutex_unlock(&control->lock);
    }
    cvy_control_wake(control);
}

void cvy_control_lose(struct cvy_control *control, struct cvy_line *line, bool stays_open, const char *how) {
    char reason[CVY_CONTROL_TEXT + 1];
    int rank = line->rank;
    int n = snprintf(reason, sizeof reason, "rank %d is lost: %s", rank, how);
    if (line->tag[0] && n > 0 && (size_t)n < sizeof reason)
        snprintf(reason + n, sizeof reason - (size_t)n, "; it was last at %s, number %llu", line->tag,
                 (unsigned long long)line->sequence);
    pthread_mutex_lock(&control->lock);
    if (stays_open)
        line->state = CVY_LINE_LOST;
    else
        cvy_line_close(line);
    pthread_mutex_unlock(&control->lock);
    cvy_control_tell(control, &(struct cvy_control_event){.rank = rank, .group = -1, .reason = reason});
}

/* ---- strangers, at rank 0 ---------------------------------------------------------------------------- */

static bool is_here(const struct cvy_control *control, int rank) {
    for (int i = 0; i < control->n_lines; i++) {
        enum cvy_line_state state = control->lines[i].state;
        if (state >= CVY_LINE_UP && control->lines[i].rank == rank)
            return true;
    }
    return false;
}

/* Sends a last word and closes. Under the lock. */
static void dismiss(struct cvy_control *control, struct cvy_line *line, enum cvy_control_type type,
                    const char *text) {
    cvy_control_post(control, line, type, text);
    cvy_line_close(line);
}

/* Why a process that knows the token does not fit; false: it does. Under the lock. */
static bool is_misfit(struct cvy_control *control, const struct cvy_control_message *m, char *why, size_t n) {
    if (m->type == CVY_CONTROL_HELLO && m->group != control->size)
        snprintf(why, n, "rank %d counts %d processes, rank 0 counts %d: start all with the same number",
                 m->rank, m->group, control->size);
    else if (m->rank < 1 || m->rank >= control->size)
        snprintf(why, n, "there is no rank %d among %d processes", m->rank, control->size);
    else if (is_here(control, m->rank))
        snprintf(why, n, "rank %d is here already: two processes have the same rank", m->rank);
    else
        return false;
    cvy_text_line(control->refused, sizeof control->refused, why);
    return true;
}

/* Under the lock. */
static void hear_stranger(struct cvy_control *control, struct cvy_line *line,
                          const struct cvy_control_message *m) {
    char why[sizeof control->refused];
    if (m->type != CVY_CONTROL_HELLO || strcmp(m->text, control->token) != 0) {
        cvy_line_close(line);
    } else if (is_misfit(control, m, why, sizeof why)) {
        dismiss(control, line, CVY_CONTROL_REFUSE, why);
    } else if (atomic_load(&control->is_over)) {
        dismiss(control, line, CVY_CONTROL_ABANDON, control->reason);
    } else {
        line->rank = m->rank;
        line->state = CVY_LINE_WELCOMED;
        cvy_control_post(control, line, CVY_CONTROL_WELCOME, "");
    }
}

/* Under the lock. */
static void hear_ready(struct cvy_control *control, struct cvy_line *line,
                       const struct cvy_control_message *m) {
    char why[sizeof control->refused];
    if (is_misfit(control, m, why, sizeof why)) {
        dismiss(control, line, CVY_CONTROL_REFUSE, why);
        return;
    }
    line->state = CVY_LINE_UP;
    line->heard_ns = control->awake_ns;
}

/* ---- members ----------------------------------------------------------------------------------------- */

static void hear_beat(struct cvy_line *line, const struct cvy_control_message *m) {
    if (!m->text[0])
        return;
    line->sequence = m->sequence;
    cvy_text_line(line->tag, sizeof line->tag, m->text);
}

/* Under the lock; true: tell the event. */
static bool hear_other(struct cvy_control *control, struct cvy_line *line,
                       const struct cvy_control_message *m, struct cvy_control_event *event) {
    *event = (struct cvy_control_event){.from = line, .rank = m->rank, .group = m->group, .reason = m->text};
    bool is_root = control->rank == 0;
    if (line->state == CVY_LINE_LOST || (is_root && line->state == CVY_LINE_PARTED))
        return false;
    switch (m->type) {
    case CVY_CONTROL_BEAT:
        hear_beat(line, m);
        return false;
    case CVY_CONTROL_READY:
        if (is_root && line->state == CVY_LINE_WELCOMED)
            hear_ready(control, line, m);
        return false;
    case CVY_CONTROL_ALL_HERE:
        if (!is_root && !control->is_met) {
            control->is_met = true;
            cvy_counter_add(&control->here, 1);
        }
        return false;
    case CVY_CONTROL_GOODBYE:
        line->state = CVY_LINE_PARTED;
        event->group = -1;
        event->reason = "rank 0 left before all processes had started";
        return !is_root && !control->is_met;
    case CVY_CONTROL_REFUSE:
        event->group = -1;
        return !is_root;
    case CVY_CONTROL_ABANDON:
        return true;
    default: /* nothing that ends anything */
        return false;
    }
}

void cvy_control_hear(struct cvy_control *control, struct cvy_line *line,
                      const struct cvy_control_message *m) {
    struct cvy_control_event event;
    bool is_event = false;
    pthread_mutex_lock(&control->lock);
    if (line->state == CVY_LINE_STRANGER)
        hear_stranger(control, line, m);
    else if (control->rank != 0 || m->rank == line->rank)
        is_event = hear_other(control, line, m, &event);
    pthread_mutex_unlock(&control->lock);
    if (is_event)
        cvy_control_tell(control, &event);
}

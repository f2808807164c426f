/* The inside of a control connection, shared by the control_*.c files.

   Threads: the connection's own (control_thread.c) opens, reads, judges and closes lines; callers send through them.
   Both change lines and the state below only under `lock`, which is never held while an event is told. Whoever gives up
   holds it for 1/4 s at most.
   Awake time advances by at most a wait and a beat from one look at the lines to the next: a process that was stopped
   finds that little time passed, and accuses nobody of its own silence. */
#ifndef CVY_COMM_CONTROL_INNER_H
#define CVY_COMM_CONTROL_INNER_H

#include "base/thread.h"
#include "comm/control.h"
#include "comm/control_address.h"
#include "comm/control_line.h"

enum { CVY_CONTROL_MAX_STRANGERS = 16 };

struct cvy_control {
    int rank, size;
    double timeout_s;
    int64_t beat_ns;  /* between two beats: timeout_s / 8, from 1/20 s to 2 s */
    int64_t limit_ns; /* of silence: 3/4 timeout_s */
    char token[CVY_CONTROL_TOKEN + 1];
    struct cvy_counter here; /* 1: all have started */
    int wake_fd;             /* an eventfd that ends the thread's sleep */
    bool has_thread;
    pthread_t thread;

    /* of the thread alone */
    int64_t awake_ns, looked_ns; /* awake time; when it was advanced */
    int64_t next_beat_ns, next_accept_ns;
    struct pollfd *fds; /* [2 + n_lines] */

    pthread_mutex_t lock; /* of all that follows */
    int listener;         /* -1: closed, or not rank 0 */
    int n_lines;
    struct cvy_line
        *lines; /* rank 0: of the others and of strangers, in the order of coming; else: to rank 0 */
    struct cvy_control_events events;
    bool is_started, is_met; /* by the owner; by all */
    _Atomic bool is_over;    /* the last event has come; `reason` is fixed */
    char reason[CVY_CONTROL_TEXT + 1];
    CVY_VEC(int32_t) abandoned; /* groups */
    char refused[160];          /* who came and did not fit; "": nobody */
    bool is_leaving;
    int64_t leave_by_ns;

    pthread_mutex_t note_lock; /* its own, so that a note never waits for the network */
    uint64_t sequence;
    char tag[CVY_CONTROL_TAG + 1];
};

cvy_status cvy_control_run_thread(struct cvy_control *control);
void cvy_control_wake(struct cvy_control *control);

/* A message came on a line that passed for one. By the thread. */
void cvy_control_hear(struct cvy_control *control, struct cvy_line *line,
                      const struct cvy_control_message *m);
/* The other end of a line that was up is gone, for the reason `how`; the line is closed, or stays open as LOST. By the
   thread. */
void cvy_control_lose(struct cvy_control *control, struct cvy_line *line, bool stays_open, const char *how);

/* Who gave up, and what. */
struct cvy_control_event {
    const struct cvy_line *from; /* who needs not be told; NULL: nobody */
    bool is_own;                 /* of this process: its owner knows */
    int rank;                    /* who gave up or is lost */
    int32_t group;
    const char *reason;
};
/* The first of its kind is told to the others and to the owner; rank 0 passes it on to all. Any thread, without the
   lock. */
void cvy_control_tell(struct cvy_control *control, const struct cvy_control_event *event);

/* Sends `type` with `text` on a line, or on all that lead to processes of this run. Under the lock. */
void cvy_control_post(struct cvy_control *control, struct cvy_line *line, enum cvy_control_type type,
                      const char *text);
void cvy_control_post_all(struct cvy_control *control, enum cvy_control_type type, const char *text);
/* Gives the network a moment to take what was sent, since the process may end at once: an end with unread bytes throws
   unsent ones away. Under the lock. */
void cvy_control_push(struct cvy_control *control);
double cvy_control_push_s(const struct cvy_control *control); /* how long at most */
int cvy_control_count_up(const struct cvy_control *control);  /* under the lock, or by the thread */

/* Finds rank 0 at one of the places and is welcomed. CVY_ERR_LOST at the deadline; CVY_ERR_USAGE: refused. Local. */
cvy_status cvy_control_dial(struct cvy_control *control, const struct cvy_control_places *places);

#endif

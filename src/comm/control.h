/* The control connection: each process keeps one TCP connection to rank 0, beside the data, so that nobody waits for
   ever for somebody who is gone. It carries heartbeats both ways, what each process is doing, and the reasons of
   those that give up, which rank 0 passes on to all. A private part of transports between processes.

   - End of file without a goodbye, and silence of 3/4 of timeout_s, mean that a process is lost. Rank 0 then tells all;
     a process that hears nothing from rank 0 finds that out by itself.
   - The first loss or giving up of the whole run (group -1) is the last event of a control connection. */
#ifndef CVY_COMM_CONTROL_H
#define CVY_COMM_CONTROL_H

#include "base/status.h"

#include <stdint.h>

struct cvy_control;

enum { CVY_CONTROL_ADDRESS = 1024 };

struct cvy_control_events {
    void *context;
    /* Somebody gave up `group`, or (-1) the whole run; or is lost: "rank 2 is lost: its connection broke at step 12,
       bucket 3". Called by the connection's thread; must not wait. Not called for one's own abandon. */
    void (*abandoned)(void *context, int32_t group, const char *reason);
};

/* Rank 0 listens on all its interfaces; `address` becomes the text that the others connect to (several addresses
   and a token that keeps strangers out). Local. */
cvy_status cvy_control_listen(int size, double timeout_s, char address[CVY_CONTROL_ADDRESS],
                              struct cvy_control **out);
/* The others. Tries each address in turn until the deadline. Local. */
cvy_status cvy_control_connect(int rank, int size, double timeout_s, const char *address,
                               struct cvy_control **out);
/* Rank 0 waits until all have come (CVY_ERR_LOST names those that have not); then the connection's thread starts.
   Collective. */
cvy_status cvy_control_start(struct cvy_control *control, const struct cvy_control_events *events);

/* What this process waits for, for the others' messages should it be lost: sent with the next heartbeat. `tag` is copied.
   Any thread, cheap. Local. */
void cvy_control_note(struct cvy_control *control, uint64_t sequence, const char *tag);
/* This process gives up `group`, or (-1) the whole run. Any thread; on return the reason is on its way. Local. */
void cvy_control_abandon(struct cvy_control *control, int32_t group, const char *reason);

/* Says goodbye, so that the end of file is no loss; waits at most timeout_s for the last bytes to leave. Accepts NULL. */
void cvy_control_close(struct cvy_control *control);

#endif

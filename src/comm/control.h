/* The control connection: each process keeps one TCP connection to rank 0, beside the data, so that nobody waits for
   ever for somebody who is gone. It carries heartbeats both ways, what each process is doing, and the reasons of
   those that give up, which rank 0 passes on to all. A private part of transports between processes.

   - End of file without a goodbye, and silence of 3/4 of timeout_s, mean that a process is lost. Rank 0 then tells all,
     the lost one too, should it wake; a process that hears nothing from rank 0 finds that out by itself. A process
     that was stopped itself accuses nobody of it.
   - The first loss or giving up of the whole run (group -1) is the last event of a control connection.
   - A group is given up once: what comes later about it is not told. */
#ifndef CVY_COMM_CONTROL_H
#define CVY_COMM_CONTROL_H

#include "base/status.h"

#include <stdint.h>

struct cvy_control;

enum { CVY_CONTROL_ADDRESS = 1024 };

struct cvy_control_events {
    void *context;
    /* Somebody gave up `group`, or (-1) the whole run; or is lost: "rank 2 is lost: its process ended without a word
       (killed?); it was last at bucket 3, number 17". One line of at most 900 bytes. Called by the connection's thread,
       from cvy_control_start until cvy_control_close returns; must not wait nor close. Not called for one's own
       abandon, nor for what made cvy_control_start fail. */
    void (*abandoned)(void *context, int32_t group, const char *reason);
};

/* Rank 0 listens on all its interfaces; `address` becomes the text that the others connect to (several addresses
   and a token that keeps strangers out). The connection's thread starts and answers the others. CVY_ERR_IO: no socket.
   Owner of *out: the caller, who closes it. Local. */
cvy_status cvy_control_listen(int size, double timeout_s, char address[CVY_CONTROL_ADDRESS],
                              struct cvy_control **out);
/* The others. Tries each address in turn until rank 0 answers. CVY_ERR_LOST at the deadline, or when the run was given
   up before; CVY_ERR_USAGE: another size than rank 0's, a rank that is there already, no address. Owner of *out: the
   caller. Local, once rank 0 listens. */
cvy_status cvy_control_connect(int rank, int size, double timeout_s, const char *address,
                               struct cvy_control **out);
/* Waits until all have called it; from then on events are told. CVY_ERR_LOST: names those that have not come at rank
   0's deadline, or says who gave up or was lost in the meantime; then all of them fail. Collective. */
cvy_status cvy_control_start(struct cvy_control *control, const struct cvy_control_events *events);

/* What this process waits for, for the others' messages should it be lost: sent with the next heartbeat. `tag` is
   copied (120 bytes at most). Any thread, cheap. Local. */
void cvy_control_note(struct cvy_control *control, uint64_t sequence, const char *tag);
/* This process gives up `group`, or (-1) the whole run. Any thread. On return the reason is on its way, and arrives
   even if the process ends now; for that it waits at most 1/4 s. Local. */
void cvy_control_abandon(struct cvy_control *control, int32_t group, const char *reason);

/* Says goodbye, so that the end of file is no loss, and waits at most timeout_s: for the last bytes to leave, rank 0
   also for the goodbyes of all others, unless the run was given up. Frees it. Accepts NULL. Local. */
void cvy_control_close(struct cvy_control *control);

#endif

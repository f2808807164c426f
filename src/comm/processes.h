/* The processes of a run, as one of them sees them: the network, the control connection, and the groups that are open
   here, so that losing a process ends every wait. A private part of the transports between processes.

   Three threads meet here: the main thread (join, open, close, leave), the courier (courier.h), and that of the
   control connection, which tells of those that gave up or are lost. */
#ifndef CVY_COMM_PROCESSES_H
#define CVY_COMM_PROCESSES_H

#include "comm/control.h"
#include "comm/courier.h"
#include "comm/hub.h"

enum { CVY_REASON = 512 };

struct cvy_open_group {
    uint32_t number;
    struct cvy_hub *hub; /* NULL: given up by others before it was opened here */
    char reason[CVY_REASON];
    struct cvy_open_group *next;
};

struct cvy_processes {
    struct cvy_world base;
    double timeout_s;
    cvy_log_sink log;
    struct cvy_courier courier;
    struct cvy_control *control; /* NULL when there is one process */
    pthread_t thread;
    struct cvy_counter stage; /* of joining and parting: enum cvy_stage */
    struct cvy_error error;   /* of the courier while joining */
    struct cvy_error end;     /* and when it parted */
    bool is_orderly;          /* all said goodbye: the network may be closed */
    pthread_mutex_t lock;     /* of what follows */
    uint32_t n_groups;        /* opened so far: a group's number is never used again */
    struct cvy_open_group *groups;
    _Atomic bool is_lost; /* somebody gave up the run, or is lost */
    char lost_reason[CVY_REASON];
};

enum cvy_stage { CVY_STAGE_NETWORK = 1, CVY_STAGE_EXCHANGED, CVY_STAGE_JOINED, CVY_STAGE_ENDED };

/* As rt/comm.h says of join and leave, for a given network. */
cvy_status cvy_processes_join(const struct cvy_transport *transport, const struct cvy_network *network,
                              double timeout_s, const cvy_log_sink *log, struct cvy_world **out);
cvy_status cvy_processes_leave(struct cvy_world *world, const char *reason);

/* What the courier does to join: meets the others, until CVY_STAGE_JOINED. */
cvy_status cvy_processes_meet(struct cvy_processes *all);

/* As rt/comm.h says of open and close, for a group with a world. */
cvy_status cvy_processes_open(const struct cvy_group_spec *spec, struct cvy_group **members);
void cvy_processes_close(int n, struct cvy_group **members);

/* Ends every wait of this process. Any thread. */
void cvy_processes_lose(struct cvy_processes *all, const char *reason);
/* The same for one group; it may still have to be opened. */
void cvy_processes_stop(struct cvy_processes *all, uint32_t number, const char *reason);

#endif

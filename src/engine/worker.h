/* A worker: one device and the thread that owns it. Tasks are given to all workers at once; the caller waits.
   The first worker that fails makes the others give up (through the transport), and its error is the one that
   the caller gets. */
#ifndef CVY_ENGINE_WORKER_H
#define CVY_ENGINE_WORKER_H

#include "base/thread.h"
#include "engine/clip.h"
#include "engine/store.h"
#include "engine/timeline.h"
#include "rt/comm.h"

struct cvy_plan;
struct cvy_worker;

/* A device with streams is waited for when the task ends. */
typedef cvy_status (*cvy_task)(struct cvy_worker *worker, void *argument);

/* What a worker is at: nothing, a task, or a wait for other devices within it. */
enum cvy_doing { CVY_DOING_NOTHING, CVY_DOING_WORK, CVY_DOING_WAIT };

struct cvy_worker {
    struct cvy_plan *plan;
    int32_t rank; /* device number within the run, all processes counted */
    struct cvy_device *device;
    struct cvy_group *group;    /* of all devices; NULL when alone */
    struct cvy_group *replicas; /* of the devices with the same stage; NULL when there is one replica */
    struct cvy_program *program;
    struct cvy_store store;
    size_t *reducible_offset; /* per reducible of the training graph: its place in a sum */
    struct cvy_masters masters;
    struct cvy_clip clip;
    struct cvy_graph *chosen; /* the training graph that fixed the masters: owner of names */

    char *arena; /* all of this device's memory; NULL before cvy_execute_prepare */
    size_t arena_bytes;
    char *memory
        [CVY_N_SPACES]; /* bases within it; SLOT and SUM of slot and sum 0; NONE: staging, a plain copy of
                                   one stored value */
    size_t memory_bytes[CVY_N_SPACES];
    bool is_split;  /* the arena has room for split calls */
    double touch_s; /* spent on the first touch of pages */
    struct cvy_timeline timeline;
    struct cvy_spans spans;           /* of program->train */
    void **in, **out;                 /* operand addresses of the running operator */
    struct cvy_reduction *reductions; /* per bucket, and of rows */
    struct cvy_partial *row_partials; /* one of each replica */
    float **mine;                     /* partials of this device, per bucket; behind them its rows */
    struct cvy_piece *pieces;         /* of the running message */
    struct cvy_access *accesses;      /* of what is being enqueued that talks; devices with streams alone */
    bool is_linked;                   /* the links to other stages are open */
    bool is_loss_bad;                 /* of a batch of this update; only where updates can be skipped */
    bool is_skipping;                 /* the newest gradients were not finite: updates do nothing */
    bool is_evaluation_stale;         /* weights changed since evaluation's packed copies were made */

    struct cvy_team *team;
    int64_t wait_start_ns, waited_ns; /* in talk with other devices; of a device without streams */
    _Atomic int doing;                /* enum cvy_doing: others look at it to say who is late */
    pthread_t thread;
    bool is_running;
    struct cvy_error error; /* of the newest task */
};

struct cvy_team { /* all workers of this process */
    struct cvy_worker *workers;
    int n;
    const struct cvy_transport *transport; /* NULL when alone */
    const struct cvy_device_transport
        *on_devices; /* NULL: what passes between devices passes through the host */
    cvy_task task;
    void *argument;
    bool is_closing;
    _Atomic int first_failed; /* index of the first that failed in this task; -1 */
    struct cvy_counter start, done;
    uint64_t n_tasks;
};

/* Starts the threads; each binds itself to its device. */
cvy_status cvy_team_start(struct cvy_team *team);
/* Runs task(worker, argument) on every worker. Returns the first failure. */
cvy_status cvy_team_run(struct cvy_team *team, cvy_task task, void *argument);
/* Ends the threads; devices and memory stay the owner's. */
void cvy_team_stop(struct cvy_team *team);

#endif

/* What the engine's files share of a session, and what tests look at. */
#ifndef CVY_ENGINE_SESSION_H
#define CVY_ENGINE_SESSION_H

#include "engine/plan.h"
#include "engine/scale.h"

enum cvy_split_state { CVY_SPLIT_NONE, CVY_SPLIT_FORWARD, CVY_SPLIT_BACKWARD };

/* The update under way: the batches whose gradients are in its total. */
struct cvy_under_way {
    int64_t n,
        n_done; /* images of the whole update, of those batches; 0: none, all done: it waits for cvy_update */
    double loss; /* sums over those batches, of what each adds to the metrics of the update */
    int64_t top1, top5;
};

struct cvy_session {
    struct cvy_plan *plan;
    double lr;
    uint64_t n_updates;
    struct cvy_loss_scale scale;
    cvy_metrics metrics; /* but for the norm */
    double grad_norm;
    enum cvy_split_state split;                   /* which of the three calls was made last */
    int64_t split_n, split_first, split_n_update; /* its images, as in struct cvy_work */
    struct cvy_under_way under_way;
    CVY_VEC(const struct cvy_stored *) stored; /* of all stages, from the first replica's stores */
    size_t staging_bytes;                      /* the largest of them, plain */
};

/* Fails when the batch does not fit the plan (CVY_ERR_DATA: a label); *out is the batch with its defaults filled
   in. `given` stays the owner of what both point to. Local. */
cvy_status cvy_batch_settle(const struct cvy_plan *plan, const cvy_batch *given, bool is_training,
                            bool needs_labels, cvy_batch *out);

/* Settles n_update. Fails when the batch cannot be the next of the update under way, or begin one. *first = images of
   that update which came before. Local. */
cvy_status cvy_under_way_join(const struct cvy_session *session, cvy_batch *batch, int64_t *first);
/* Counts a batch of n images whose gradients are in, and settles the session's metrics: `loss` and hits are what the
   devices have, of the batch alone, or once it was the last, of the whole update. Local. */
void cvy_under_way_add(struct cvy_session *session, int64_t n, int64_t n_update, const cvy_metrics *got);

/* Compiles what a batch of n images needs (its shards' sizes) and makes room for it. The trainer calls it for
   all sizes of an epoch before its first step; a step calls it itself. Collective. */
cvy_status cvy_session_prepare(struct cvy_session *session, int64_t n, bool is_training, bool is_split);

/* From now on training is of `graph`, the plan's for images of another size, at most as large: other kernels for the
   same weights, sums and optimiser. Compiles for batches of n[0] and n[1] images (0: none). CVY_ERR_USAGE, with nothing
   changed: its parameters are others; or an update is under way. Collective. */
cvy_status cvy_session_resize(struct cvy_session *session, const cvy_graph *graph, const int64_t n[2]);

/* The gradient that the newest cvy_backward (not cvy_step: the update follows at once) left for a parameter, plain,
   averaged over the global batch. For tests. Local. */
cvy_status cvy_session_gradient(struct cvy_session *session, const char *name, float *out);

/* A stored value (parameter, buffer, optimiser state), plain, to and from every device. The caller knows its
   size from cvy_store_find. Collective. */
cvy_status cvy_session_read(struct cvy_session *session, const char *name, void *host);
cvy_status cvy_session_write(struct cvy_session *session, const char *name, const void *host);
/* Room for any stored value, for cvy_session_write: the staging of a device in host memory, which is as large and idle
   between two calls, so that a layer of hundreds of MB is not in memory once more; else new, *own, which the caller
   frees. Local. */
cvy_status cvy_session_borrow(const struct cvy_session *session, void **host, void **own);

/* Runs the `start` schedule: parameters to all devices, packed copies remade. Collective. */
cvy_status cvy_session_spread(struct cvy_session *session);

/* Replaces a device's program by the one that `text` describes, as cvy_program_print gave it. For tests. Local. */
cvy_status cvy_session_replace_program(struct cvy_session *session, int device, const char *text);

#endif

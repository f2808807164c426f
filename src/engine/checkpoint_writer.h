/* Writes checkpoints behind the training's back: the loop is held for a copy of the state in memory (and, when the one
   before is not on the disk yet, for that); a thread of its own does files, hashes, syncs and renames. One process
   writes, the others only take part in the copying. */
#ifndef CVY_ENGINE_CHECKPOINT_WRITER_H
#define CVY_ENGINE_CHECKPOINT_WRITER_H

#include "base/thread.h"
#include "engine/checkpoint.h"

struct cvy_checkpoint_writer { /* zero-initialised: closed */
    const char *dir;
    const struct cvy_card *card;
    struct cvy_snapshot snapshot; /* the thread's while a checkpoint is under way */
    bool has_best;                /* that checkpoint is best/, too */
    struct cvy_counter asked, done;
    uint64_t n_asked, n_settled; /* of the owner: checkpoints begun; those whose outcome it knows */
    struct cvy_error outcome;    /* of the newest one that is done */
    _Atomic bool is_closing;
    pthread_t thread;
    bool is_open, is_running;
};

/* `dir` and `card` must outlive the writer. Local. */
cvy_status cvy_checkpoint_writer_open(struct cvy_checkpoint_writer *writer, const char *dir,
                                      const struct cvy_card *card);
/* Begins to write the snapshot as last/, before that, if has_best, as best/. None is under way. Local. */
cvy_status cvy_checkpoint_writer_begin(struct cvy_checkpoint_writer *writer, bool has_best);
/* Is one under way? Local. */
bool cvy_checkpoint_writer_is_busy(const struct cvy_checkpoint_writer *writer);
/* Waits until none is under way. *is_new: one has ended whose outcome was not told yet: it is the result. Local. */
cvy_status cvy_checkpoint_writer_settle(struct cvy_checkpoint_writer *writer, bool *is_new);
/* What is under way is written to its end. Local. */
void cvy_checkpoint_writer_close(struct cvy_checkpoint_writer *writer);

#endif

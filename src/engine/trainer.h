/* The training loop: epochs of steps, an evaluation after each, checkpoints last/ and best/, metrics.jsonl and the
   same numbers for TensorBoard.
   The trainer prints nothing: it calls back.

   With an output folder there is a whole checkpoint last/ before and after the evaluation of every epoch and, after an
   interruption or so many updates, one in the middle of an epoch; a run resumed from any of them ends with the same
   bits as one that was never stopped. */
#ifndef CVY_ENGINE_TRAINER_H
#define CVY_ENGINE_TRAINER_H

#include "engine/checkpoint_writer.h"
#include "engine/event_file.h"
#include "engine/mistakes.h"
#include "engine/profile.h"
#include "engine/progress.h"
#include "engine/resume.h"
#include "engine/run_folder.h"
#include "engine/schedule.h"
#include "engine/step_trace.h"

struct cvy_trainer_options {
    struct cvy_task_options task;    /* kind CVY_TASK_TRAIN */
    struct cvy_lr_schedule schedule; /* updates_per_epoch is set by the trainer */
    const char *weights;             /* to start from; NULL: drawn from the seed */
    bool replace_head;               /* those weights but the head's */
    const char *resume;              /* a checkpoint to go on from, or CVY_RESUME_AUTO; NULL: none */
    const char *output_dir;          /* NULL: nothing is written */
    bool overwrite;                  /* a run that lies in output_dir may be replaced */
    int64_t checkpoint_every;        /* updates between two checkpoints in an epoch; 0: only at its end */
    int64_t log_every;               /* steps between two that are written down, at least 1 */
    struct cvy_ema_options ema;
    bool profile;       /* write trace.json and profile.json into output_dir */
    int64_t check_sync; /* updates between two comparisons of the replicas' weights; 0: none */
    int64_t early_stop; /* epochs without a better validation that end the run; 0: none */
    bool is_shards_fixed, is_threads_fixed; /* asked for by the user: a resume refuses other numbers */
};

struct cvy_trainer;

/* What happened; called in the thread that trains. Each may be NULL. */
struct cvy_trainer_events {
    void *context;
    void (*on_step)(void *context, const struct cvy_step_report *report, const struct cvy_progress *progress);
    void (*on_epoch)(void *context, const struct cvy_epoch_report *report,
                     const struct cvy_progress *progress);
    /* Asked after every step; true stops after a checkpoint. */
    bool (*is_interrupted)(void *context);
};

/* What --on-nan skip has left out. */
struct cvy_skips {
    int64_t in_row, in_epoch;
};

struct cvy_trainer { /* read by the caller, written by the trainer */
    struct cvy_trainer_options options;
    struct cvy_trainer_events events;
    struct cvy_task task;
    struct cvy_card card;
    struct cvy_train_state state;
    struct cvy_ema ema;
    struct cvy_progress progress;
    struct cvy_metrics_file *metrics;
    struct cvy_event_file *event_file; /* there when `metrics` is */
    struct cvy_resume resume;
    struct cvy_run_folder folder;
    struct cvy_skips skips;
    double loaded_s; /* waited for images in this epoch */
    struct cvy_checkpoint_writer writer;
    int64_t n_steps;              /* of an epoch: updates */
    struct cvy_tally val;         /* of the newest evaluation */
    bool is_saved;                /* last/ holds the present state, or will soon */
    bool is_evaluated;            /* `val` belongs to the present weights */
    struct cvy_mistakes mistakes; /* of that evaluation; counted when there is an output folder */
    struct cvy_profile profile;
    struct cvy_step_trace step_trace; /* of one step of this run, the same */
};

/* Opens data, plan and session; loads weights or the checkpoint. Refuses a checkpoint of another model, of other
   classes or of another optimiser, and S or T that differ from it, and an output folder with another run in it.
   `trainer` is zero-initialised; release it with cvy_trainer_close also on failure. Texts of the options
   must outlive it. Collective. */
cvy_status cvy_trainer_open(struct cvy_trainer *trainer, const struct cvy_trainer_options *options,
                            const struct cvy_trainer_events *events);
/* Trains until the last epoch is done and evaluated. CVY_INTERRUPTED after a checkpoint; CVY_ERR_NAN as soon as
   a loss is not finite. Collective. */
cvy_status cvy_trainer_run(struct cvy_trainer *trainer);
void cvy_trainer_close(struct cvy_trainer *trainer);

/* Loads the weights behind PATH (see cvy_weights_find) into an open task, after checking that they are its
   network's and its classes'. Collective. */
cvy_status cvy_task_load_weights(struct cvy_task *task, const char *path);
/* The same for weights that may be of other classes: all but the head, the parameters whose shape depends on the
   number of classes; they stay as they are, which is logged. CVY_ERR_USAGE: there is none. Collective. */
cvy_status cvy_task_load_body(struct cvy_task *task, const char *path);

#endif

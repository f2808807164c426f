/* An image-classification task: data sets, loaders, network, plan and session put together as `train`, `eval`,
   `predict` and `explain` need them. What the options leave open is settled here, from the data first, then from
   the model; task->options says what was settled. */
#ifndef CVY_ENGINE_TASK_H
#define CVY_ENGINE_TASK_H

#include "data/transform.h"
#include "engine/progressive.h"
#include "engine/state.h"
#include "models/models.h"

enum cvy_task_kind {
    CVY_TASK_TRAIN,   /* data with labels, both splits; plan.optimizer is set */
    CVY_TASK_EVAL,    /* data with labels, the validation split */
    CVY_TASK_PREDICT, /* images, or nothing but a shape */
};

struct cvy_task_options {
    enum cvy_task_kind kind;
    bool is_plan_only; /* nothing will run: data are not needed, their shape is taken if they are there */
    bool is_any_batch; /* a batch larger than the training set becomes that */
    const char *model;
    int64_t num_classes; /* 0: the data's, else the model's */
    int64_t input[3];    /* C,H,W; 0: the data's, else the model's */
    double label_smoothing;
    double mixup_alpha, cutmix_alpha; /* of training; 0: none */
    const char *data;                 /* a data spec; NULL: none, the plan alone is wanted */
    int n_mean_std;  /* numbers that loader.mean and .std were given for; 0: for all channels */
    int as_stored;   /* 1: photographs are not turned as EXIF says, -1: they are; 0: as the card says */
    int64_t n_times; /* that an image of training comes one after another; 0: 1 */
    bool skips_bad;  /* training goes on without images that cannot be read */
    struct cvy_progressive progressive; /* sizes of training images, epoch by epoch */
    cvy_loader_options loader; /* of training; evaluation takes it without shuffle and augmentation */
    cvy_plan_options plan;     /* its batch_size and accumulate are taken from loader */
};

struct cvy_task {
    struct cvy_task_options options; /* settled; its texts belong to the caller */
    const struct cvy_model *model;
    cvy_dataset *train, *val; /* train: only when training; val: also what predict reads */
    cvy_loader *train_loader, *val_loader;
    struct cvy_transform transform; /* of evaluation */
    cvy_plan *plan;
    cvy_session *session;
    int64_t side; /* the height of training images: options.input's until cvy_task_resize */
};

/* Opens the data, settles the options, plans the network. `images` (may be NULL) is a data set to be used
   instead of options->data; the task owns it, also on failure. `task` is zero-initialised; release it with
   cvy_task_free also on failure. Refuses what does not fit: a batch larger than the training set, classes,
   channels, a model that is no classifier. Local. */
cvy_status cvy_task_open(struct cvy_task *task, const struct cvy_task_options *options, cvy_dataset *images);
/* Opens the session of the plan. Collective. */
cvy_status cvy_task_start(struct cvy_task *task);
/* Training images have this side from the next epoch on; sizes of its batches are compiled. Collective. */
cvy_status cvy_task_resize(struct cvy_task *task, int64_t side);
void cvy_task_free(struct cvy_task *task);

#endif

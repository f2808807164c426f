/* The learning rate as a function of the update. The formulas are torch.optim.lr_scheduler's, combined as
   torchvision's reference training does (warm-up, then the main schedule), but evaluated at every update:
   where torchvision counts whole epochs, we use t = update / updates per epoch. */
#ifndef CVY_ENGINE_SCHEDULE_H
#define CVY_ENGINE_SCHEDULE_H

#include "base/status.h"

struct cvy_lr_schedule {
    const char *kind;          /* a name of the table */
    double lr;                 /* the base rate: after the warm-up; the peak of onecycle */
    double min_lr;             /* cosine ends here */
    double step_size;          /* epochs between two steps of `step` */
    double gamma;              /* factor of `step` */
    double warmup_epochs;      /* 0: none */
    double warmup_decay;       /* the warm-up begins at lr * warmup_decay */
    const char *warmup_method; /* "linear": rises to lr; "constant": stays until the warm-up is over */
    int64_t n_epochs;
    int64_t updates_per_epoch;
};

struct cvy_lr_schedule_kind {
    const char *name;
    const char *torch_name; /* accepted as well */
    const char *help;       /* one line with the formula */
    bool has_own_warmup;    /* then warmup_epochs must be 0 */
    bool is_stretched;      /* ends with the last epoch: another number of epochs changes every rate */
    /* The rate at time t of `length` epochs, both counted from the end of the warm-up. */
    double (*rate)(const struct cvy_lr_schedule *schedule, double t, double length);
};

/* NULL when there is none. */
const struct cvy_lr_schedule_kind *cvy_lr_schedule_find(const char *name);
const struct cvy_lr_schedule_kind *cvy_lr_schedule_table(size_t *n);

/* Every field in range and finite? CVY_ERR_USAGE names the first that is not, as the command line calls it. */
cvy_status cvy_lr_check(const struct cvy_lr_schedule *schedule);
/* The rate of update u = 0, 1, …; of a checked schedule. */
double cvy_lr_at(const struct cvy_lr_schedule *schedule, int64_t update);

#endif

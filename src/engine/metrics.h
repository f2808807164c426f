/* metrics.jsonl: one JSON object per line, "event" says which kind. The keys are documented in
   docs/metrics.md and stable. Every line is whole in the file when the call returns; a line that does not fit
   on the disk leaves nothing of itself behind. */
#ifndef CVY_ENGINE_METRICS_H
#define CVY_ENGINE_METRICS_H

#include "engine/scale.h"

struct cvy_step_report {
    int64_t epoch, n_epochs;     /* epochs and steps count from 0 */
    int64_t step, n_steps;       /* within the epoch */
    double lr;                   /* of this update */
    cvy_metrics metrics;         /* of this step's images, before the update */
    struct cvy_loss_scale scale; /* of --amp fp16, after this update */
    bool is_clipped;             /* --clip-grad-norm: metrics.grad_norm says something */
    double images_per_s;         /* of this step, loading included */
};

/* Sums over one pass through a data set. */
struct cvy_tally {
    int64_t n, top1, top5; /* images; right by top-1 and top-5 */
    double loss_sum;       /* over the images */
};

struct cvy_epoch_report {
    int64_t epoch, n_epochs;
    double lr;              /* of the last update */
    struct cvy_tally train; /* while training: in training mode, weights changing */
    struct cvy_tally val;   /* after the epoch, in evaluation mode: each image exactly once */
    struct cvy_tally ema;   /* the same of the average of the weights; n = 0: there is none */
    double train_s, val_s;
    bool is_best;
};

/* In percent; 0 for an empty tally. */
double cvy_tally_top1(const struct cvy_tally *tally);
double cvy_tally_top5(const struct cvy_tally *tally);
double cvy_tally_loss(const struct cvy_tally *tally);

struct cvy_metrics_file;

/* Opens for appending (a resumed run goes on in the same file), or empties the file first. Local. */
cvy_status cvy_metrics_open(const char *path, bool is_new, struct cvy_metrics_file **out);
/* Removes what a run wrote of this step and later ones, and of the ends of this epoch and later ones, before it was
   killed; and an unfinished last line. Local. */
cvy_status cvy_metrics_cut(struct cvy_metrics_file *file, int64_t epoch, int64_t step);
cvy_status cvy_metrics_step(struct cvy_metrics_file *file, const struct cvy_step_report *report);
cvy_status cvy_metrics_epoch(struct cvy_metrics_file *file, const struct cvy_epoch_report *report);
void cvy_metrics_close(struct cvy_metrics_file *file); /* NULL: nothing */

#endif

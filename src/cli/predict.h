/* The two forms of convoy predict: image files to class names, and a file of tensors to a file of logits. */
#ifndef CVY_CLI_PREDICT_H
#define CVY_CLI_PREDICT_H

#include "cli/command.h"
#include "engine/trainer.h"

/* What both forms need: options with the card's answers filled in. */
struct prediction {
    const struct options *flags;
    struct cvy_task_options options;
    struct cvy_task task;
    struct cvy_card card;
    char *weights; /* the file */
};

/* CVY_ERR_NAN when a logit of `image` is NaN or infinite: such a row has no best class. */
cvy_status predict_check(const float *logits, int64_t n_classes, const char *image);

/* Prints the best classes of each file of `paths`. */
cvy_status predict_images(struct prediction *p, const char *const *paths, int64_t n);
/* images f32[N,C,H,W] of --input, as the network takes them, to logits f32[N,K] of --output. */
cvy_status predict_tensors(struct prediction *p);

#endif

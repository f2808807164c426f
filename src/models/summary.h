/* A model in numbers, for `convoy models`. */
#ifndef CVY_MODELS_SUMMARY_H
#define CVY_MODELS_SUMMARY_H

#include "models/models.h"

struct cvy_summary_input {
    int64_t channels, height, width; /* 0, all three: the model's natural input */
    int64_t num_classes;             /* 0: the model's default */
    int64_t batch;                   /* images; 0: 1 */
};

struct cvy_summary {
    struct cvy_summary_input input;  /* with the defaults filled in */
    int64_t n_parameters, n_buffers; /* elements: trained; stored but not trained (running statistics) */
    double forward_flops;            /* for one image; multiply and add count 2 */
    int64_t weight_bytes;            /* parameters and buffers */
    int64_t activation_bytes; /* for the batch: every forward result once, as training keeps them before
                                        fusion and reuse of memory; views excluded */
};

/* CVY_ERR_USAGE when the model does not take such images. Local. */
cvy_status cvy_model_summarize(const struct cvy_model *model, const struct cvy_summary_input *input,
                               struct cvy_summary *out);

#endif

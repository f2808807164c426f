/* Statistics of a data set's samples: what normalisation needs, how large the images are, how many each class has. */
#ifndef CVY_DATA_STATISTICS_H
#define CVY_DATA_STATISTICS_H

#include "data/survey.h"

enum { CVY_N_SIZE_BINS = 32 };

struct cvy_statistics {
    int64_t n, n_bad; /* samples; those that cannot be read, which count nowhere else */
    int64_t channels; /* that all of them have */
    /* Per channel; of u8 images between 0 and 1. Each image weighs the same, whatever its size: training makes them
       all the same size. */
    double mean[4], std[4];
    int64_t shorter_side[CVY_N_SIZE_BINS]; /* bin k: images of 2^k to 2^(k+1) - 1 pixels */
    int64_t smallest[2], largest[2];       /* height, width; by pixels, the first such image */
    int64_t *per_class;                    /* of each class of the data set; NULL: it has none */
    struct cvy_survey_progress progress;   /* the caller's */
};

/* Reads every sample with n_workers threads, at least 1, whose number does not change the result. *out is
   zero-initialised but for `progress`, and released by cvy_statistics_free, also after a failure. CVY_ERR_UNSUPPORTED:
   more than 4 channels. */
cvy_status cvy_statistics_take(const struct cvy_dataset *dataset, int n_workers, struct cvy_statistics *out);
void cvy_statistics_free(struct cvy_statistics *statistics);

#endif

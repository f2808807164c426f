/* What the self-tests of `convoy doctor` share: the devices of --devices, each with a thread of its own, as in
   training, that measures its kernels and its memory and then adds floats with every other device. */
#ifndef CVY_CLI_DOCTOR_TRIAL_H
#define CVY_CLI_DOCTOR_TRIAL_H

#include "base/status.h"
#include "engine/devices.h"
#include "rt/comm.h"

#include <pthread.h>

struct trial_member {
    struct trial *trial;
    int rank;
    struct cvy_device *device;
    struct cvy_group *group; /* of all members; NULL when alone */
    pthread_t thread;
    bool is_running;
    struct cvy_error error;
    double convolutions, products; /* GFLOP/s */
    double memory;                 /* GB/s that additions read and write */
};

enum { TRIAL_ROUNDS = 5 };

struct trial_pair {
    int member[2];
    struct cvy_group *group[2];
    const struct cvy_device_transport *on_devices; /* NULL: through the host */
    double seconds[2][TRIAL_ROUNDS];               /* that each of the two took */
};

struct trial {
    const struct cvy_transport *transport;
    struct cvy_device_list list;
    struct trial_member *members; /* list.n */
    struct trial_pair *pairs;     /* all of few devices, neighbours of many */
    int n_pairs;
};

/* ---- doctor_trial.c ---- */

/* Opens the devices and groups and measures everything. `trial` is zero-initialised; release it with doctor_trial_free
   also on failure. CVY_ERR_FAILED: a sum is wrong. Local. */
cvy_status doctor_trial_run(struct trial *trial, const char *devices, const char *backend,
                            const cvy_log_sink *log, struct cvy_pool *pool);
void doctor_trial_free(struct trial *trial);

/* ---- doctor_rates.c ---- */

/* Fills in what one device computes and moves. [owner] */
cvy_status doctor_rates(struct trial_member *me);

/* ---- doctor_reduce.c ---- */

/* Which pairs there are; opens their groups. Local. */
cvy_status doctor_pairs_open(struct trial *trial);
void doctor_pairs_close(struct trial *trial);
/* GB/s of floats that the two add up: in the best round, by the slower of them. Local. */
double doctor_pair_rate(const struct trial_pair *pair);
/* Adds with each partner in turn; the others wait. [owner] Collective. */
cvy_status doctor_reduce(struct trial_member *me);

#endif

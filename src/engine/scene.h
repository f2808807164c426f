/* A training step as it would be with something changed: at first the recorded one (profile_file.h). What a fault costs
   is the time of a scene over that of its copy in which the fault is mended. */
#ifndef CVY_ENGINE_SCENE_H
#define CVY_ENGINE_SCENE_H

#include "engine/profile_file.h"

/* step = wait + host + span * simulated / simulated as recorded, where the simulation replays the instructions. */
struct cvy_scene {
    const struct cvy_profile_file *file;
    struct cvy_replay replay; /* linked; own times may be changed */
    CVY_VEC(double) cost;     /* of each device, as in the file */
    double simulated_us;      /* as recorded */
    double host_us;
    double wait_us; /* for images: while load_us is 0 it does not follow from anything */
    double load_us; /* processor time that loading takes in a step; only where steps wait for it, else 0 */
    int64_t workers;
    double idle;    /* the share that is left of the time in which the busiest stage waits: 1 */
    double batches; /* of the recorded size, that a step has: 1 */
};

/* `file` must outlive it. `out` is zero-initialised; release it with cvy_scene_free also on failure. CVY_ERR_DATA:
   what was recorded cannot be replayed. Local. */
cvy_status cvy_scene_open(const struct cvy_profile_file *file, struct cvy_scene *out);
/* `out` is zero-initialised. Local. */
cvy_status cvy_scene_copy(const struct cvy_scene *scene, struct cvy_scene *out);
void cvy_scene_free(struct cvy_scene *scene);

/* us for as many images as a recorded step has. Local. */
cvy_status cvy_scene_time(const struct cvy_scene *scene, double *out);
/* us that the replayed step takes, and that the devices of its busiest stage compute. Local. */
cvy_status cvy_scene_simulate(const struct cvy_scene *scene, double *span_us, double *busiest_us);

/* Is it talk with other devices, the wait for it left aside? */
bool cvy_scene_is_talk(const struct cvy_replay_instr *instr);
/* us that a device's passes over shards take; all but talk. */
double cvy_scene_passes(const struct cvy_scene *scene, size_t device);
double cvy_scene_work(const struct cvy_scene *scene, size_t device);
/* How many shards a device computes; how many devices compute the same stage. */
int64_t cvy_scene_shards(const struct cvy_scene *scene, size_t device);
int64_t cvy_scene_replicas(const struct cvy_scene *scene, int32_t stage);
/* How many times the batch may be multiplied, a power of 2: at most `most`, and an epoch has four updates left. */
int64_t cvy_scene_growth(const struct cvy_scene *scene, int64_t most);
/* Multiplies what a device's instructions take; `with_talk`: also its talk. */
void cvy_scene_scale(struct cvy_scene *scene, size_t device, double factor, bool with_talk);

#endif

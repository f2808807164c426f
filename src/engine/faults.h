/* Why is training slow? The faults that a recorded step shows (profile_file.h): for each its cause in figures, the
   flag that mends it, and how much faster training becomes, predicted by replaying the step without it (scene.h). */
#ifndef CVY_ENGINE_FAULTS_H
#define CVY_ENGINE_FAULTS_H

#include "engine/scene.h"

enum { CVY_VERDICT_TEXT = 320 };

struct cvy_verdict {
    const char *name; /* "input-bound" */
    double alone;     /* the gain if this alone is mended: images/s over images/s as recorded */
    double gain;      /* if those before it in the list are mended already */
    bool is_at_best;  /* the gain is what there is at most */
    char cause[CVY_VERDICT_TEXT], advice[CVY_VERDICT_TEXT];
    char flags[128]; /* of convoy train, that mend it; "": none does */
};

/* Each kind of fault is one constant struct, and one line in faults.c. */
struct cvy_fault {
    const char *name;
    /* Looks for it in the scene; if it is there, mends it in the scene and says so in *out, whose advice is "" else.
       The scene is the caller's. */
    cvy_status (*mend)(struct cvy_scene *scene, struct cvy_verdict *out);
};

struct cvy_verdicts { /* zero-initialised: none */
    CVY_VEC(struct cvy_verdict) list;
    double mended_us;     /* a step's time, for as many images, with all of them mended */
    double compute_share; /* of a step: operators at work, the mean over devices */
    double conv_share;    /* of operators: convolutions */
    bool is_timed; /* else devices have streams: what they do is not timed, and only loading is looked at */
};

/* The faults whose mending gains at least a tenth, in the order of gain: first what gains most, then what gains most
   after that, and so on. `out` is zero-initialised; free out->list. CVY_ERR_DATA: the step cannot be replayed.
   Local. */
cvy_status cvy_find_faults(const struct cvy_profile_file *file, struct cvy_verdicts *out);

/* Does a device take longer for a shard than others for the like? Local. */
cvy_status cvy_find_slow_device(const struct cvy_scene *scene, bool *is_there);

extern const struct cvy_fault cvy_fault_input, cvy_fault_slow_device, cvy_fault_shards, cvy_fault_stages,
    cvy_fault_bubble, cvy_fault_talk, cvy_fault_small_batch;

#endif

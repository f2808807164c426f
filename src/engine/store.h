/* The parameter store of one device: which stored values there are, in which layout and where. Fixed by the
   training graph (by the evaluation graph of a plan without optimiser); every other graph binds to it by name. */
#ifndef CVY_ENGINE_STORE_H
#define CVY_ENGINE_STORE_H

#include "pass/pass.h"
#include "rt/program.h"

struct cvy_stored {
    const char *name;
    enum cvy_value_kind kind; /* PARAM, BUFFER, STATE or HYPER */
    struct cvy_desc desc;
    struct cvy_init init;
    bool is_auxiliary;                /* as in cvy_value_info */
    const struct cvy_layout *layout;  /* the master; NULL: plain */
    struct cvy_place place;           /* in PERSIST */
    struct cvy_kernel *pack, *unpack; /* plain to master and back; NULL when the master is plain */
};

struct cvy_packed { /* a copy of a parameter in another layout, "conv1.weight:aBcd16b" */
    const char *name;
    struct cvy_place place; /* in PACKED */
    bool has_refresh[2];    /* an operator remakes it: [0] before evaluations, [1] after updates */
};

struct cvy_store {
    CVY_VEC(struct cvy_stored) values;
    CVY_VEC(struct cvy_packed) packs;
    size_t persist_bytes, packed_bytes;
    size_t weight_bytes;                 /* of parameters and buffers, which come first */
    size_t staging_bytes, scratch_bytes; /* what packing and unpacking need beside the value */
    struct cvy_pool pool;
};

/* Takes in the stored values of a chosen graph that nodes of `stage` use, there or, when none does, in the graph of
   evaluation. */
cvy_status cvy_store_build(struct cvy_store *store, const struct cvy_graph *g,
                           const struct cvy_graph *evaluation, const struct cvy_device *device,
                           int32_t stage);
void cvy_store_free(struct cvy_store *store);

struct cvy_stored *cvy_store_find(const struct cvy_store *store, const char *name); /* NULL when absent */
/* The packed copy of that name, made when new. The pointer holds until the next call. */
cvy_status cvy_store_pack(struct cvy_store *store, const char *name, size_t n_bytes, struct cvy_packed **out);

/* Makes the pack and unpack kernels. [owner of the device] */
cvy_status cvy_store_prepare(struct cvy_store *store, struct cvy_device *device);

#endif

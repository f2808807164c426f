/* A session's stored values in the host's memory: plain, by name, as files have them. */
#ifndef CVY_ENGINE_TENSORS_H
#define CVY_ENGINE_TENSORS_H

#include "engine/session.h"
#include "graph/safetensors.h"

struct cvy_tensors {             /* zero-initialised: none */
    struct cvy_safetensor *data; /* in the order of names */
    size_t n;
    char *block; /* their bytes, each CVY_ALIGN-ed, in the order of session->stored */
    size_t n_bytes;
};

/* Weights are parameters and buffers. */
bool cvy_stored_is_weight(const struct cvy_stored *stored);
bool cvy_stored_is_state(const struct cvy_stored *stored);

/* Room for the selected values. The session must outlive it; freed with cvy_tensors_free, also on failure. Local. */
cvy_status cvy_tensors_open(const struct cvy_session *session,
                            bool (*select)(const struct cvy_stored *stored), struct cvy_tensors *out);
/* Copies the session's values there, in all processes. Collective. */
cvy_status cvy_tensors_read(struct cvy_session *session, struct cvy_tensors *tensors);
void cvy_tensors_free(struct cvy_tensors *tensors);

#endif

/* Device lists: "cpu:0", "cpu:0-3", "cpu:0,cpu:1", "auto"; of a backend with parts "cuda:0/0-3", several devices that
   share one piece of hardware. */
#ifndef CVY_ENGINE_DEVICES_H
#define CVY_ENGINE_DEVICES_H

#include "base/mem.h"
#include "rt/backend.h"

struct cvy_device_list {
    const struct cvy_backend *backend;
    int *index; /* n, owned by the pool */
    int *part;  /* n: of that piece of hardware; 0 where it is not shared */
    int n;
    int n_absent;     /* of the list, but not here: left out */
    const char *text; /* short form: "cpu:0-1" */
};

/* NULL and "auto": device 0 of the backend. `backend` (may be NULL) overrides the names' own, so that
   "--backend reference" runs anything. is_elastic: devices that are not here are left out, if one is left.
   CVY_ERR_USAGE names the part that is wrong. Local. */
cvy_status cvy_devices_parse(const char *text, const char *backend, bool is_elastic, struct cvy_pool *pool,
                             struct cvy_device_list *out);

#endif

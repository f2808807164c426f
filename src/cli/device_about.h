/* What a backend says about a device. */
#ifndef CVY_CLI_DEVICE_ABOUT_H
#define CVY_CLI_DEVICE_ABOUT_H

#include "rt/backend.h"

struct device_about {  /* owned: device_about_free */
    char *line, *more; /* "cuda:0: …"; further lines, "name: value" each */
};

/* Opens the device for as long as it takes. Local. */
cvy_status device_about(const struct cvy_backend *backend, int index, const cvy_log_sink *log,
                        struct device_about *out);
void device_about_free(struct device_about *about);

#endif

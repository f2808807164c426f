/* See device_about.h. */
#include "cli/device_about.h"

#include "base/text.h"

#include <stdlib.h>

cvy_status device_about(const struct cvy_backend *backend, int index, const cvy_log_sink *log,
                        struct device_about *out) {
    const struct cvy_device_spec spec = {.index = index, .n_local = 1, .conv_algo = "auto", .log = log};
    struct cvy_device *device;
    struct cvy_text line = {0}, more = {0};
    CVY_TRY(backend->open(&spec, &device));
    backend->describe(device, &line);
    cvy_text_printf(&more, "%s", "");
    if (backend->describe_more)
        backend->describe_more(device, &more);
    backend->close(device);
    cvy_status status = cvy_text_take(&line, &out->line);
    return status == CVY_OK ? cvy_text_take(&more, &out->more) : status;
}

void device_about_free(struct device_about *about) {
    free(about->line);
    free(about->more);
    *about = (struct device_about){NULL, NULL};
}

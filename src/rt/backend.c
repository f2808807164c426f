/* Finding a backend by its name, a kernel for a call, and what all backends check alike.
   Invariant: a device without a kernel of its own still runs the call through the operator's reference, as
   long as the host can read its memory. */
#include "rt/backend.h"
#include "rt/fallback.h"

#include <string.h>

const struct cvy_backend *cvy_backend_find(const char *name) {
    size_t n;
    const struct cvy_backend *const *table = cvy_backend_table(&n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    }
    return NULL;
}

cvy_status cvy_device_synchronize(struct cvy_device *device) {
    return device->backend->streams ? device->backend->streams->synchronize(device) : CVY_OK;
}

const struct cvy_kernel_impl *const *cvy_backend_kernels(const struct cvy_backend *backend) {
    static const struct cvy_kernel_impl *const none[] = {NULL};
    if (backend && backend->kernels_of)
        backend = cvy_backend_find(backend->kernels_of);
    return backend && backend->kernels ? backend->kernels : none;
}

const struct cvy_kernel_impl *cvy_kernel_select(const struct cvy_device *device, const struct cvy_call *call,
                                                bool *is_fallback) {
    if (device->backend->select)
        return device->backend->select(device, call, is_fallback);
    const struct cvy_kernel_impl *const *kernel = device->backend->kernels;
    for (; kernel && *kernel; kernel++) {
        if (strcmp((*kernel)->op, call->op->name) != 0)
            continue;
        if ((*kernel)->supports && !(*kernel)->supports(device, call))
            continue;
        if (is_fallback)
            *is_fallback = false;
        return *kernel;
    }
    if (is_fallback)
        *is_fallback = true;
    return device->backend->is_host_memory && call->op->reference ? &cvy_fallback_kernel : NULL;
}

cvy_status cvy_ingest_check(const struct cvy_device *device, const struct cvy_ingest *what,
                            const struct cvy_operand_spec *to_spec) {
    enum { MAX_CHANNELS = sizeof what->batch->mean / sizeof *what->batch->mean };
    const cvy_batch *batch = what->batch;
    struct cvy_shape shape = CVY_SHAPE(what->n, batch->channels, batch->height, batch->width);
    if (batch->channels > MAX_CHANNELS)
        return CVY_FAIL(CVY_ERR_USAGE, "%s: images have %lld channels; at most %d are supported",
                        device->name, (long long)batch->channels, MAX_CHANNELS);
    if (!cvy_shape_equal(&shape, &to_spec->desc.shape) || to_spec->desc.dtype != CVY_F32)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "%s: images of %lldx%lldx%lld do not fit the model's input; "
                        "say --input %lldx%lldx%lld",
                        device->name, (long long)batch->channels, (long long)batch->height,
                        (long long)batch->width, (long long)batch->channels, (long long)batch->height,
                        (long long)batch->width);
    return CVY_OK;
}

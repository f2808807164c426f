/* What every ingest checks first. Apart from backend.c, so that a plugin can have it without the table of backends. */
#include "rt/backend.h"

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

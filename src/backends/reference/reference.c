/* The reference backend: no kernels of its own, so that every operator runs its oracle in double precision
   (rt/fallback.h). Slow and plain: the yardstick for every other backend, and what to use when in doubt.
   Invariants: plain layouts only, host memory, one thread. */
#include "base/mem.h"
#include "base/thread.h"
#include "rt/backend.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct cvy_backend cvy_backend_reference;

static int count(void) { return INT_MAX; }

static cvy_status open_device(const struct cvy_device_spec *spec, struct cvy_device **out) {
    struct cvy_device *device;
    CVY_TRY(CVY_ALLOC(device, 1));
    device->backend = &cvy_backend_reference;
    device->spec = *spec;
    device->spec.n_threads = 1;
    snprintf(device->name, sizeof device->name, "reference:%d", spec->index);
    *out = device;
    return CVY_OK;
}

static void close_device(struct cvy_device *device) { free(device); }

static cvy_status enter(struct cvy_device *device) {
    (void)device;
    return CVY_OK;
}

static void describe(const struct cvy_device *device, struct cvy_text *out) {
    cvy_text_printf(out, "%s: one thread, plain loops in double precision", device->name);
}

static cvy_status alloc(struct cvy_device *device, size_t n_bytes, void **out, double *touch_s) {
    void *memory = aligned_alloc(CVY_ALIGN, cvy_align_up(n_bytes + !n_bytes, CVY_ALIGN));
    if (!memory)
        return CVY_FAIL(CVY_ERR_MEMORY, "%s: no %.1f MB of memory; use a smaller batch or more shards",
                        device->name, (double)n_bytes / 1e6);
    int64_t start = cvy_now_ns();
    memset(memory, 0, n_bytes);
    *touch_s = (double)(cvy_now_ns() - start) * 1e-9;
    *out = memory;
    return CVY_OK;
}

static void release(struct cvy_device *device, void *memory, size_t n_bytes) {
    (void)device, (void)n_bytes;
    free(memory);
}

static cvy_status upload(struct cvy_device *device, void *to, const void *host, size_t n_bytes) {
    (void)device;
    memcpy(to, host, n_bytes);
    return CVY_OK;
}

static cvy_status download(struct cvy_device *device, void *host, const void *from, size_t n_bytes) {
    return upload(device, host, from, n_bytes);
}

static cvy_status zero(struct cvy_device *device, void *at, size_t n_bytes) {
    (void)device;
    memset(at, 0, n_bytes);
    return CVY_OK;
}

static cvy_status add(struct cvy_device *device, float *sum, const float *a, const float *b, size_t n) {
    (void)device;
    for (size_t i = 0; i < n; i++)
        sum[i] = a[i] + b[i];
    return CVY_OK;
}

static const char *amp_refusal(cvy_dtype low) {
    (void)low;
    return NULL;
}

static cvy_status not_finite(struct cvy_device *device, const float *at, size_t n, float *flag) {
    (void)device;
    for (size_t i = 0; i < n; i++)
        *flag = isfinite(at[i]) ? *flag : 1;
    return CVY_OK;
}

/* to[n][c][h][w] = (x / 255 (u8 only) - mean[c]) / std[c] */
static cvy_status ingest(struct cvy_device *device, const struct cvy_ingest *what,
                         const struct cvy_operand_spec *to_spec, void *to) {
    const cvy_batch *batch = what->batch;
    int64_t channels = batch->channels, pixels = batch->height * batch->width;
    bool is_nhwc = batch->order == CVY_NHWC;
    int64_t channel_step = is_nhwc ? 1 : pixels, pixel_step = is_nhwc ? channels : 1;
    CVY_TRY(cvy_ingest_check(device, what, to_spec));
    float *at = to;
    for (int64_t n = what->first; n < what->first + what->n; n++) {
        for (int64_t c = 0; c < channels; c++) {
            int64_t base = n * channels * pixels + c * channel_step;
            for (int64_t p = 0; p < pixels; p++) {
                int64_t i = base + p * pixel_step;
                double x = batch->dtype == CVY_U8 ? ((const uint8_t *)batch->images)[i] / 255.0
                                                  : ((const float *)batch->images)[i];
                *at++ = (float)((x - (double)batch->mean[c]) / (double)batch->std[c]);
            }
        }
    }
    return CVY_OK;
}

static size_t layout_bytes(const struct cvy_layout *layout, const struct cvy_desc *desc) {
    (void)layout;
    return cvy_desc_bytes(desc);
}

static void layout_print(const struct cvy_layout *layout, struct cvy_text *out) {
    (void)layout;
    cvy_text_printf(out, "plain");
}

static bool layout_find(struct cvy_device *device, const char *name, const struct cvy_layout **out) {
    (void)device;
    *out = NULL;
    return strcmp(name, "plain") == 0;
}

static const struct cvy_kernel_impl *const kernels[] = {NULL};

const struct cvy_backend cvy_backend_reference = {
    .name = "reference",
    .help = "every operator's reference kernel, in double precision: slow, for comparison",
    .is_host_memory = true,
    .amp_refusal = amp_refusal,
    .count = count,
    .open = open_device,
    .close = close_device,
    .enter = enter,
    .describe = describe,
    .alloc = alloc,
    .release = release,
    .upload = upload,
    .download = download,
    .zero = zero,
    .add = add,
    .not_finite = not_finite,
    .ingest = ingest,
    .layout_bytes = layout_bytes,
    .layout_print = layout_print,
    .layout_find = layout_find,
    .kernels = kernels,
};

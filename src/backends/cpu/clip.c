/* What clips gradients: the norm of each, and the division of all. In whatever layout a gradient has: the padding
   of blocked layouts holds zeros, which add nothing and stay zeros. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/vector.h"
#include "base/mem.h"

#include <stdlib.h>

/* A tensor is cut into so many chunks, whatever T is: so the bits are a function of the tensor and its layout. */
enum { N_CHUNKS = 64 };

struct clip {
    struct cvy_kernel base;
    int64_t n; /* elements, with padding */
    int n_threads;
    const float *x; /* of the present run */
    float *y, scale;
    double sums[N_CHUNKS];
};

static void find_chunk(const struct clip *me, int64_t chunk, int64_t *first, int64_t *end) {
    cpu_part(me->n, CPU_LANES, (int)chunk, N_CHUNKS, first, end);
}

/* ---- vector_norm ------------------------------------------------------------------------------------- */

CPU_VECTOR static double sum_of_squares(const float *x, int64_t n) {
    double sums[CPU_LANES] = {0};
    int64_t i = 0;
    for (; i + CPU_LANES <= n; i += CPU_LANES)
        CPU_EACH_LANE(l) sums[l] += (double)x[i + l] * (double)x[i + l];
    for (int l = 0; i < n; i++, l++)
        sums[l] += (double)x[i] * (double)x[i];
    return cpu_fold_lanes(sums);
}

static void sum_part(void *context, int part, int n_parts) {
    struct clip *me = context;
    int64_t chunk, last, first, end;
    cpu_part(N_CHUNKS, 1, part, n_parts, &chunk, &last);
    for (; chunk < last; chunk++) {
        find_chunk(me, chunk, &first, &end);
        me->sums[chunk] = sum_of_squares(me->x + first, end - first);
    }
}

static cvy_status run_vector_norm(struct cvy_kernel *kernel, void *const *in, void *const *out,
                                  void *scratch) {
    struct clip *me = (struct clip *)kernel;
    double sum = 0;
    (void)scratch;
    me->x = in[0];
    cpu_team_run(cpu_team_parts(me->n, me->n_threads), sum_part, me);
    for (int c = 0; c < N_CHUNKS; c++)
        sum += me->sums[c];
    *(float *)out[0] = (float)sqrt(sum);
    return CVY_OK;
}

/* ---- unscale ----------------------------------------------------------------------------------------- */

CPU_VECTOR static void divide(float *y, const float *x, float scale, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] / scale;
}

static void divide_part(void *context, int part, int n_parts) {
    const struct clip *me = context;
    int64_t first, end;
    cpu_part(me->n, CPU_LANES, part, n_parts, &first, &end);
    divide(me->y + first, me->x + first, me->scale, end - first);
}

static cvy_status run_unscale(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct clip *me = (struct clip *)kernel;
    (void)scratch;
    me->x = in[0];
    me->scale = *(const float *)in[1];
    me->y = out[0];
    cpu_team_run(cpu_team_parts(me->n, me->n_threads), divide_part, me);
    return CVY_OK;
}

/* ---- slots ------------------------------------------------------------------------------------------- */

static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    for (int i = 1; i < call->n_in; i++)
        call->in[i].layout = NULL;
    call->out[0].layout = call->n_in > 1 ? call->in[0].layout : NULL;
    return CVY_OK;
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call,
                          const struct cvy_kernel_impl *impl, struct cvy_kernel **out) {
    struct clip *me;
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = impl;
    me->n = (int64_t)(cpu_layout_bytes(call->in[0].layout, &call->in[0].desc) / sizeof(float));
    me->n_threads = device->spec.n_threads;
    *out = &me->base;
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

#define CLIP_KERNEL(name)                                                                    \
    static cvy_status prepare_##name(struct cvy_device *device, const struct cvy_call *call, \
                                     struct cvy_kernel **out, size_t *scratch_bytes) {       \
        *scratch_bytes = 0;                                                                  \
        return prepare(device, call, &cpu_kernel_##name, out);                               \
    }                                                                                        \
    const struct cvy_kernel_impl cpu_kernel_##name = {.op = #name,                           \
                                                      .supports = cpu_supports_f32,          \
                                                      .choose = choose,                      \
                                                      .prepare = prepare_##name,             \
                                                      .run = run_##name,                     \
                                                      .release = release};
CLIP_KERNEL(vector_norm)
CLIP_KERNEL(unscale)

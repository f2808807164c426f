/* The optimisers whose step depends on norms of the whole parameter, lars and lamb, over a bucket of parameters, in
   whatever layout a parameter and its states have: padding holds zeros, which add nothing and stay zeros. Two passes
   over chunks whose cuts do not depend on T: the first leaves two sums of squares of each chunk, the second updates. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/vector.h"
#include "base/mem.h"
#include "ops/optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_LEAD = 1, CHUNK = 16384, MAX_GROUP = 4, MAX_COEFFICIENTS = 9 };

struct chunk {
    int param;
    int64_t first, n;
    double sums[2]; /* squares: of the parameter, and of the other tensor whose norm counts */
};

/* n elements of one parameter; in and out as the operator's group. */
typedef void measure_function(const float *k, float *const *in, float *const *out, int64_t n, double sums[2]);
typedef void update_function(const float *k, float ratio, float *const *in, float *const *out, int64_t n);

struct adaptive {
    struct cvy_kernel base;
    union {
        struct cvy_lars_attrs lars;
        struct cvy_adam_attrs lamb;
    } attrs;
    int n_params, n_in, n_out; /* n_in, n_out: of a group */
    int n_threads, n_chunks;
    measure_function *measure;
    update_function *update;
    struct chunk *chunks;
    float *ratio; /* of each parameter */
    float k[MAX_COEFFICIENTS];
    void *const *in, *const *out; /* of the present run, without the lead */
};

/* The chunk's operands. */
static void find(const struct adaptive *me, const struct chunk *chunk, float **in, float **out) {
    for (int i = 0; i < me->n_in; i++)
        in[i] = (float *)me->in[chunk->param * me->n_in + i] + chunk->first;
    for (int o = 0; o < me->n_out; o++)
        out[o] = (float *)me->out[chunk->param * me->n_out + o] + chunk->first;
}

static void measure_part(void *context, int part, int n_parts) {
    const struct adaptive *me = context;
    int64_t c, end;
    cpu_part(me->n_chunks, 1, part, n_parts, &c, &end);
    for (; c < end; c++) {
        float *in[MAX_GROUP], *out[MAX_GROUP];
        find(me, &me->chunks[c], in, out);
        me->measure(me->k, in, out, me->chunks[c].n, me->chunks[c].sums);
    }
}

static void update_part(void *context, int part, int n_parts) {
    const struct adaptive *me = context;
    int64_t c, end;
    cpu_part(me->n_chunks, 1, part, n_parts, &c, &end);
    for (; c < end; c++) {
        float *in[MAX_GROUP], *out[MAX_GROUP];
        find(me, &me->chunks[c], in, out);
        me->update(me->k, me->ratio[me->chunks[c].param], in, out, me->chunks[c].n);
    }
}

/* Norms of parameter p, whose chunks begin at *c, and go on. */
static void add_chunks(const struct adaptive *me, int p, int *c, double norm[2]) {
    norm[0] = norm[1] = 0;
    for (; *c < me->n_chunks && me->chunks[*c].param == p; ++*c) {
        for (int s = 0; s < 2; s++)
            norm[s] += me->chunks[*c].sums[s];
    }
    norm[0] = sqrt(norm[0]);
    norm[1] = sqrt(norm[1]);
}

CPU_INLINE void add_squares(double sums[CPU_LANES], const cpu_v16 *v) {
    float a[CPU_LANES];
    memcpy(a, v, sizeof a);
    CPU_EACH_LANE(l) sums[l] += (double)a[l] * (double)a[l];
}

/* NAME_measure and NAME_update from NAME_look(k, in, out, &v), which leaves in v what the second norm is of and stores
   through out what the first pass is to store, and NAME_step(k, ratio, in, out): each on 16 elements. */
#define PASSES(name, n_in, n_stored, first_stored, n_out)                                                  \
    CPU_INLINE void name##_measure_part(const float *k, float *const *in, float *const *out, int64_t i,    \
                                        int width, double param[CPU_LANES], double other[CPU_LANES]) {     \
        cpu_v16 from[n_in], to[n_out], v;                                                                  \
        for (int o = 0; o < (n_in); o++)                                                                   \
            cpu_load(&from[o], in[o] + i, width);                                                          \
        name##_look(k, from, to, &v);                                                                      \
        add_squares(param, &from[0]);                                                                      \
        add_squares(other, &v);                                                                            \
        for (int o = (first_stored); o < (first_stored) + (n_stored); o++)                                 \
            cpu_store(out[o] + i, &to[o], width);                                                          \
    }                                                                                                      \
    CPU_VECTOR static void name##_measure(const float *k, float *const *in, float *const *out, int64_t n,  \
                                          double sums[2]) {                                                \
        double param[CPU_LANES] = {0}, other[CPU_LANES] = {0};                                             \
        int64_t i = 0;                                                                                     \
        for (; i + CPU_LANES <= n; i += CPU_LANES)                                                         \
            name##_measure_part(k, in, out, i, CPU_LANES, param, other);                                   \
        name##_measure_part(k, in, out, i, (int)(n - i), param, other);                                    \
        sums[0] = cpu_fold_lanes(param);                                                                   \
        sums[1] = cpu_fold_lanes(other);                                                                   \
    }                                                                                                      \
    CPU_INLINE void name##_update_part(const float *k, float ratio, float *const *in, float *const *out,   \
                                       int64_t i, int width) {                                             \
        cpu_v16 from[n_in], to[n_out];                                                                     \
        for (int o = 0; o < (n_in); o++) /* what the first pass has stored is read where it lies */        \
            cpu_load(&from[o], (n_stored) > 0 && o >= 2 ? out[o - 1] + i : in[o] + i, width);              \
        name##_step(k, ratio, from, to);                                                                   \
        for (int o = 0; o < ((n_stored) > 0 ? 1 : (n_out)); o++)                                           \
            cpu_store(out[o] + i, &to[o], width);                                                          \
    }                                                                                                      \
    CPU_VECTOR static void name##_update(const float *k, float ratio, float *const *in, float *const *out, \
                                         int64_t n) {                                                      \
        int64_t i = 0;                                                                                     \
        for (; i + CPU_LANES <= n; i += CPU_LANES)                                                         \
            name##_update_part(k, ratio, in, out, i, CPU_LANES);                                           \
        name##_update_part(k, ratio, in, out, i, (int)(n - i));                                            \
    }

/* ---- lars ---------------------------------------------------------------------------------------- */

enum { RATE, DECAY, KEEP, JOIN, BASE, AHEAD }; /* coefficients of lars: as those of sgd */

CPU_INLINE void lars_look(const float *k, const cpu_v16 *in, cpu_v16 *out, cpu_v16 *v) {
    (void)k, (void)out;
    *v = in[1];
}

/* d = ratio (grad + DECAY param); buffer = KEEP buffer + JOIN d; param -= RATE (BASE d + AHEAD buffer) */
CPU_INLINE void lars_step(const float *k, float ratio, const cpu_v16 *in, cpu_v16 *out) {
    cpu_v16 d = ratio * (in[1] + k[DECAY] * in[0]);
    out[1] = k[KEEP] * in[2] + k[JOIN] * d;
    out[0] = in[0] - k[RATE] * (k[BASE] * d + k[AHEAD] * out[1]);
}
PASSES(lars, 3, 0, 0, 2)

static void lars_coefficients(struct adaptive *me, double rate, double number) {
    const struct cvy_lars_attrs *a = &me->attrs.lars;
    bool has_momentum = a->momentum != 0, is_first = number <= 1;
    me->k[RATE] = (float)rate;
    me->k[DECAY] = (float)a->weight_decay;
    me->k[KEEP] = !has_momentum ? 1 : is_first ? 0 : (float)a->momentum;
    me->k[JOIN] = !has_momentum ? 0 : is_first ? 1 : (float)(1 - a->dampening);
    me->k[BASE] = !has_momentum || a->nesterov ? 1 : 0;
    me->k[AHEAD] = !has_momentum ? 0 : a->nesterov ? (float)a->momentum : 1;
}

static float lars_ratio(const struct adaptive *me, const double norm[2]) {
    return (float)cvy_lars_ratio(&me->attrs.lars, norm[0], norm[1]);
}

/* ---- lamb ---------------------------------------------------------------------------------------- */

enum { PACE, BETA1, NEW1, BETA2, NEW2, MEAN, ROOT, EPS, PULL }; /* coefficients of lamb */

/* step = MEAN m / (sqrt(v) ROOT + EPS) + PULL param */
CPU_INLINE void lamb_direction(const float *k, const cpu_v16 *param, const cpu_v16 *m, const cpu_v16 *v,
                               cpu_v16 *step) {
    cpu_v16 root = *v;
    cpu_sqrt(&root);
    *step = k[MEAN] * *m / (root * k[ROOT] + k[EPS]) + k[PULL] * *param;
}

/* m = BETA1 m + NEW1 grad; v = BETA2 v + NEW2 grad^2 */
CPU_INLINE void lamb_look(const float *k, const cpu_v16 *in, cpu_v16 *out, cpu_v16 *v) {
    out[1] = k[BETA1] * in[2] + k[NEW1] * in[1];
    out[2] = k[BETA2] * in[3] + k[NEW2] * in[1] * in[1];
    lamb_direction(k, &in[0], &out[1], &out[2], v);
}

/* param -= PACE ratio step, with the new m and v in the places of the old ones */
CPU_INLINE void lamb_step(const float *k, float ratio, const cpu_v16 *in, cpu_v16 *out) {
    cpu_v16 step;
    lamb_direction(k, &in[0], &in[2], &in[3], &step);
    out[0] = in[0] - k[PACE] * ratio * step;
}
PASSES(lamb, 4, 2, 1, 3)

static void lamb_coefficients(struct adaptive *me, double rate, double number) {
    const struct cvy_adam_attrs *a = &me->attrs.lamb;
    me->k[PACE] = (float)rate;
    me->k[BETA1] = (float)a->beta1;
    me->k[NEW1] = (float)(1 - a->beta1);
    me->k[BETA2] = (float)a->beta2;
    me->k[NEW2] = (float)(1 - a->beta2);
    me->k[MEAN] = (float)(1 / (1 - pow(a->beta1, number)));
    me->k[ROOT] = (float)(1 / sqrt(1 - pow(a->beta2, number)));
    me->k[EPS] = (float)a->eps;
    me->k[PULL] = (float)a->weight_decay;
}

static float lamb_ratio(const struct adaptive *me, const double norm[2]) {
    return (float)cvy_lamb_ratio(&me->attrs.lamb, norm[0], norm[1]);
}

/* ---- slots --------------------------------------------------------------------------------------- */

/* Every group lies as its parameter does. */
static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    for (int i = N_LEAD; i < call->n_in; i++)
        call->in[i].layout = call->in[i - (i - N_LEAD) % call->op->n_in].layout;
    for (int o = 0; o < call->n_out; o++)
        call->out[o].layout = call->in[N_LEAD + o / call->op->n_out * call->op->n_in].layout;
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) {
    struct adaptive *me = (struct adaptive *)kernel;
    if (me) {
        free(me->chunks);
        free(me->ratio);
    }
    free(me);
}

static int64_t count(const struct cvy_call *call, int p) {
    const struct cvy_operand_spec *param = &call->in[N_LEAD + p * call->op->n_in];
    return (int64_t)(cpu_layout_bytes(param->layout, &param->desc) / sizeof(float));
}

static cvy_status cut(struct adaptive *me, const struct cvy_call *call) {
    for (int p = 0; p < me->n_params; p++)
        me->n_chunks += (int)((count(call, p) + CHUNK - 1) / CHUNK);
    CVY_TRY(CVY_ALLOC(me->ratio, (size_t)me->n_params));
    CVY_TRY(CVY_ALLOC(me->chunks, (size_t)me->n_chunks));
    for (int p = 0, c = 0; p < me->n_params; p++) {
        for (int64_t at = 0, n = count(call, p); at < n; at += CHUNK)
            me->chunks[c++] = (struct chunk){.param = p, .first = at, .n = n - at < CHUNK ? n - at : CHUNK};
    }
    return CVY_OK;
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call,
                          const struct cvy_kernel_impl *impl, struct adaptive **out) {
    struct adaptive *me;
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = impl;
    memcpy(&me->attrs, call->attrs, call->op->attrs_size);
    me->n_in = call->op->n_in;
    me->n_out = call->op->n_out;
    me->n_params = (call->n_in - N_LEAD) / me->n_in;
    me->n_threads = device->spec.n_threads;
    cvy_status status = cut(me, call);
    if (status == CVY_OK)
        *out = me;
    else
        release(&me->base);
    return status;
}

#define ADAPTIVE_KERNEL(name)                                                                  \
    static cvy_status prepare_##name(struct cvy_device *device, const struct cvy_call *call,   \
                                     struct cvy_kernel **out, size_t *scratch_bytes) {         \
        struct adaptive *me;                                                                   \
        CVY_TRY(prepare(device, call, &cpu_kernel_##name, &me));                               \
        me->measure = name##_measure;                                                          \
        me->update = name##_update;                                                            \
        *scratch_bytes = 0;                                                                    \
        *out = &me->base;                                                                      \
        return CVY_OK;                                                                         \
    }                                                                                          \
    static cvy_status run_##name(struct cvy_kernel *kernel, void *const *in, void *const *out, \
                                 void *scratch) {                                              \
        struct adaptive *me = (struct adaptive *)kernel;                                       \
        const float *hyper = in[0]; /* learning rate, number of the update */                  \
        (void)scratch;                                                                         \
        name##_coefficients(me, (double)hyper[0], (double)hyper[1]);                           \
        me->in = in + N_LEAD;                                                                  \
        me->out = out;                                                                         \
        cpu_team_run(me->n_threads, measure_part, me);                                         \
        for (int p = 0, c = 0; p < me->n_params; p++) {                                        \
            double norm[2];                                                                    \
            add_chunks(me, p, &c, norm);                                                       \
            me->ratio[p] = name##_ratio(me, norm);                                             \
        }                                                                                      \
        cpu_team_run(me->n_threads, update_part, me);                                          \
        return CVY_OK;                                                                         \
    }                                                                                          \
    const struct cvy_kernel_impl cpu_kernel_##name = {                                         \
        .op = #name,                                                                           \
        .supports = cpu_supports_f32,                                                          \
        .choose = choose,                                                                      \
        .prepare = prepare_##name,                                                             \
        .run = run_##name,                                                                     \
        .release = release,                                                                    \
    };
ADAPTIVE_KERNEL(lars)
ADAPTIVE_KERNEL(lamb)

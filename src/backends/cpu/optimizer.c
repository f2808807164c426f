/* The optimisers over a bucket of parameters: element by element, so in whatever layout a parameter and its states
   have. The padding of blocked layouts holds zeros in parameter, gradient and states, and they stay zeros. */
#include "ops/optimizer.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/vector.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_LEAD = 1, GRAIN = 1024 };
enum { MAX_COEFFICIENTS = 9 };

/* n elements of one parameter; in and out as the operator's group. */
typedef void update_function(const float *coefficients, float *const *in, float *const *out, int64_t n);

/* update_function NAME_update from NAME_vector, which does 16 elements. */
#define UPDATE(name, n_in, n_out)                                                                            \
    CPU_INLINE void name##_part(const float *k, float *const *in, float *const *out, int64_t i, int width) { \
        cpu_v16 from[n_in], to[n_out];                                                                       \
        for (int o = 0; o < (n_in); o++)                                                                     \
            cpu_load(&from[o], in[o] + i, width);                                                            \
        name##_vector(k, from, to);                                                                          \
        for (int o = 0; o < (n_out); o++)                                                                    \
            cpu_store(out[o] + i, &to[o], width);                                                            \
    }                                                                                                        \
    CPU_VECTOR static void name##_update(const float *k, float *const *in, float *const *out, int64_t n) {   \
        int64_t i = 0;                                                                                       \
        for (; i + CPU_LANES <= n; i += CPU_LANES)                                                           \
            name##_part(k, in, out, i, CPU_LANES);                                                           \
        name##_part(k, in, out, i, (int)(n - i));                                                            \
    }

struct optimizer {
    struct cvy_kernel base;
    union {
        struct cvy_sgd_attrs sgd;
        struct cvy_adam_attrs adam; /* of adamw, too */
        struct cvy_rmsprop_attrs rmsprop;
    } attrs;
    int n_params, n_in, n_out; /* n_in, n_out: of a group */
    int n_threads;
    update_function *update;
    int64_t *n; /* elements of each parameter, with padding */
    float coefficients[MAX_COEFFICIENTS];
    void *const *in, *const *out; /* of the present run, without the lead */
};

/* ---- sgd ----------------------------------------------------------------------------------------- */

enum { RATE, DECAY, KEEP, JOIN, BASE, AHEAD }; /* coefficients of sgd */

/* d = grad + DECAY param; buffer = KEEP buffer + JOIN d; param -= RATE (BASE d + AHEAD buffer) */
CPU_INLINE void sgd_vector(const float *k, const cpu_v16 *in, cpu_v16 *out) {
    cpu_v16 param = in[0], d = in[1] + k[DECAY] * param;
    out[1] = k[KEEP] * in[2] + k[JOIN] * d;
    out[0] = param - k[RATE] * (k[BASE] * d + k[AHEAD] * out[1]);
}
UPDATE(sgd, 3, 2)

/* The formulas of the operator, folded into the six coefficients. */
static void sgd_coefficients(struct optimizer *me, double rate, double number) {
    const struct cvy_sgd_attrs *a = &me->attrs.sgd;
    bool has_momentum = a->momentum != 0, is_first = number <= 1;
    float *k = me->coefficients;
    k[RATE] = (float)rate;
    k[DECAY] = (float)a->weight_decay;
    k[KEEP] = !has_momentum ? 1 : is_first ? 0 : (float)a->momentum;
    k[JOIN] = !has_momentum ? 0 : is_first ? 1 : (float)(1 - a->dampening);
    k[BASE] = !has_momentum || a->nesterov ? 1 : 0;
    k[AHEAD] = !has_momentum ? 0 : a->nesterov ? (float)a->momentum : 1;
}

/* ---- adam and adamw ------------------------------------------------------------------------------ */

enum { SHRINK, STEP, BETA1, NEW1, BETA2, NEW2, ROOT, EPS, JOINS }; /* coefficients of both */

/* g = grad + JOINS param; m = BETA1 m + NEW1 g; v = BETA2 v + NEW2 g^2;
   param = SHRINK param - STEP m / (sqrt(v) ROOT + EPS) */
CPU_INLINE void adam_vector(const float *k, const cpu_v16 *in, cpu_v16 *out) {
    cpu_v16 grad = in[1] + k[JOINS] * in[0], root;
    out[1] = k[BETA1] * in[2] + k[NEW1] * grad;
    root = out[2] = k[BETA2] * in[3] + k[NEW2] * grad * grad;
    cpu_sqrt(&root);
    out[0] = k[SHRINK] * in[0] - k[STEP] * out[1] / (root * k[ROOT] + k[EPS]);
}
UPDATE(adam, 4, 3)

static void moments_coefficients(struct optimizer *me, double rate, double number) {
    const struct cvy_adam_attrs *a = &me->attrs.adam;
    float *k = me->coefficients;
    k[STEP] = (float)(rate / (1 - pow(a->beta1, number)));
    k[BETA1] = (float)a->beta1;
    k[NEW1] = (float)(1 - a->beta1);
    k[BETA2] = (float)a->beta2;
    k[NEW2] = (float)(1 - a->beta2);
    k[ROOT] = (float)(1 / sqrt(1 - pow(a->beta2, number)));
    k[EPS] = (float)a->eps;
}

static void adam_coefficients(struct optimizer *me, double rate, double number) {
    moments_coefficients(me, rate, number);
    me->coefficients[SHRINK] = 1;
    me->coefficients[JOINS] = (float)me->attrs.adam.weight_decay;
}

static void adamw_coefficients(struct optimizer *me, double rate, double number) {
    moments_coefficients(me, rate, number);
    me->coefficients[SHRINK] = (float)(1 - rate * me->attrs.adam.weight_decay);
    me->coefficients[JOINS] = 0;
}

/* ---- rmsprop ------------------------------------------------------------------------------------- */

enum { PACE, ALPHA, NEW, CARRY, ADD, SHARE }; /* coefficients of rmsprop */

/* g = grad + SHARE param; v = ALPHA v + NEW g^2; buffer = CARRY buffer + g / (sqrt(v) + ADD); param -= PACE buffer */
CPU_INLINE void rmsprop_vector(const float *k, const cpu_v16 *in, cpu_v16 *out) {
    cpu_v16 grad = in[1] + k[SHARE] * in[0], root;
    root = out[1] = k[ALPHA] * in[2] + k[NEW] * grad * grad;
    cpu_sqrt(&root);
    out[2] = k[CARRY] * in[3] + grad / (root + k[ADD]);
    out[0] = in[0] - k[PACE] * out[2];
}
UPDATE(rmsprop, 4, 3)

static void rmsprop_coefficients(struct optimizer *me, double rate, double number) {
    const struct cvy_rmsprop_attrs *a = &me->attrs.rmsprop;
    float *k = me->coefficients;
    (void)number;
    k[PACE] = (float)rate;
    k[ALPHA] = (float)a->alpha;
    k[NEW] = (float)(1 - a->alpha);
    k[CARRY] = (float)a->momentum;
    k[ADD] = (float)a->eps;
    k[SHARE] = (float)a->weight_decay;
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
    struct optimizer *me = (struct optimizer *)kernel;
    if (me)
        free(me->n);
    free(me);
}

static cvy_status prepare_update(struct cvy_device *device, const struct cvy_call *call,
                                 update_function *update, const struct cvy_kernel_impl *impl,
                                 struct cvy_kernel **out, size_t *scratch_bytes) {
    struct optimizer *me;
    cvy_status status;
    CVY_TRY(CVY_ALLOC(me, 1));
    me->base.impl = impl;
    memcpy(&me->attrs, call->attrs, call->op->attrs_size);
    me->n_in = call->op->n_in;
    me->n_out = call->op->n_out;
    me->n_params = (call->n_in - N_LEAD) / me->n_in;
    me->n_threads = device->spec.n_threads;
    me->update = update;
    status = CVY_ALLOC(me->n, (size_t)me->n_params);
    if (status != CVY_OK) {
        release(&me->base);
        return status;
    }
    for (int p = 0; p < me->n_params; p++) {
        const struct cvy_operand_spec *param = &call->in[N_LEAD + p * me->n_in];
        me->n[p] = (int64_t)(cpu_layout_bytes(param->layout, &param->desc) / sizeof(float));
    }
    *scratch_bytes = 0;
    *out = &me->base;
    return CVY_OK;
}

/* Elements of all parameters are shared out in one row, so that small parameters cost no balance. */
static void run_part(void *context, int part, int n_parts) {
    const struct optimizer *me = context;
    int64_t total = 0, first, end, begin = 0;
    for (int p = 0; p < me->n_params; p++)
        total += me->n[p];
    cpu_part(total, GRAIN, part, n_parts, &first, &end);
    for (int p = 0; p < me->n_params; begin += me->n[p++]) {
        int64_t from = first > begin ? first - begin : 0,
                to = end - begin < me->n[p] ? end - begin : me->n[p];
        float *in[8], *out[8];
        if (from >= to)
            continue;
        for (int i = 0; i < me->n_in; i++)
            in[i] = (float *)me->in[p * me->n_in + i] + from;
        for (int o = 0; o < me->n_out; o++)
            out[o] = (float *)me->out[p * me->n_out + o] + from;
        me->update(me->coefficients, in, out, to - from);
    }
}

static cvy_status run(struct optimizer *me, void *const *in, void *const *out) {
    me->in = in + N_LEAD;
    me->out = out;
    cpu_team_run(me->n_threads, run_part, me);
    return CVY_OK;
}

/* Operator `name` by VECTOR_update. */
#define OPTIMIZER_KERNEL(name, vector)                                                                \
    static cvy_status prepare_##name(struct cvy_device *device, const struct cvy_call *call,          \
                                     struct cvy_kernel **out, size_t *scratch_bytes) {                \
        return prepare_update(device, call, vector##_update, &cpu_kernel_##name, out, scratch_bytes); \
    }                                                                                                 \
    static cvy_status run_##name(struct cvy_kernel *kernel, void *const *in, void *const *out,        \
                                 void *scratch) {                                                     \
        const float *hyper = in[0]; /* learning rate, number of the update */                         \
        (void)scratch;                                                                                \
        name##_coefficients((struct optimizer *)kernel, (double)hyper[0], (double)hyper[1]);          \
        return run((struct optimizer *)kernel, in, out);                                              \
    }                                                                                                 \
    const struct cvy_kernel_impl cpu_kernel_##name = {                                                \
        .op = #name,                                                                                  \
        .supports = cpu_supports_f32,                                                                 \
        .choose = choose,                                                                             \
        .prepare = prepare_##name,                                                                    \
        .run = run_##name,                                                                            \
        .release = release,                                                                           \
    };
OPTIMIZER_KERNEL(sgd, sgd)
OPTIMIZER_KERNEL(adamw, adam)
OPTIMIZER_KERNEL(adam, adam)
OPTIMIZER_KERNEL(rmsprop, rmsprop)

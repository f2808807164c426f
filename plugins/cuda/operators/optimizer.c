/* The optimisers over a bucket of parameters: element by element, in whatever layout a parameter and its states have;
   many parameters to a launch. */
#include "operator.h"

#include "base/mem.h"
#include "ops/optimizer.h"

#include <stdlib.h>

enum { N_LEAD = 1, N_RATES = 3 };

struct optimizer {
    struct cvy_kernel base;
    struct cuda_device *device;
    const char *name;
    enum cuda_function function;
    bool has_rates; /* a first launch leaves in the workspace what depends on the update alone */
    struct cuda_args args;
    int n_params, n_in, n_out; /* n_in, n_out: of a group */
    struct {
        int64_t n;
        size_t n_bytes; /* of each of its tensors */
    } param[];
};

/* ---- preparing ------------------------------------------------------------------------------------------------ */

/* Every group lies as its parameter does. */
static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    for (int i = N_LEAD; i < call->n_in; i++)
        call->in[i].layout = call->in[i - (i - N_LEAD) % call->op->n_in].layout;
    for (int o = 0; o < call->n_out; o++)
        call->out[o].layout = call->in[N_LEAD + o / call->op->n_out * call->op->n_in].layout;
    return CVY_OK;
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call,
                          const struct cvy_kernel_impl *impl, struct optimizer **out) {
    struct optimizer *me;
    int n_params = (call->n_in - N_LEAD) / call->op->n_in;
    void *memory;
    CVY_TRY(cvy_alloc_items(1, sizeof *me + (size_t)n_params * sizeof me->param[0], &memory));
    me = memory;
    me->base.impl = impl;
    me->device = cuda_device(device);
    me->name = call->op->name;
    me->n_params = n_params;
    me->n_in = call->op->n_in;
    me->n_out = call->op->n_out;
    for (int p = 0; p < n_params; p++) {
        const struct cvy_operand_spec *param = &call->in[N_LEAD + p * me->n_in];
        me->param[p].n = cvy_shape_count(&param->desc.shape);
        me->param[p].n_bytes = cuda_layout_bytes(param->layout, &param->desc);
    }
    *out = me;
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

/* ---- running -------------------------------------------------------------------------------------------------- */

static cvy_status find_rates(struct optimizer *me, const void *hyper, void *rates) {
    struct cuda_args args = me->args;
    args.in[0] = hyper;
    args.out[0] = rates;
    const struct cuda_range ranges[] = {{hyper, 2 * sizeof(float), false},
                                        {rates, N_RATES * sizeof(float), true}};
    return cuda_launch(me->device, &(struct cuda_launch){.function = CUDA_adam_rates,
                                                         .name = me->name,
                                                         .args = &args,
                                                         .n = 1,
                                                         .n_ranges = 2,
                                                         .ranges = ranges});
}

/* Updates parameters first .. first + segments->n - 1. */
static cvy_status run_segments(struct optimizer *me, int first, struct cuda_segments *segments,
                               struct cuda_range lead, void *const *in, void *const *out) {
    struct cuda_range ranges[1 + CUDA_SEGMENTS * (CUDA_SEGMENT_IN + CUDA_SEGMENT_OUT)] = {lead};
    struct cuda_launch launch = {.function = me->function,
                                 .name = me->name,
                                 .args = &me->args,
                                 .segments = segments,
                                 .n_ranges = 1,
                                 .ranges = ranges};
    for (int s = 0; s < segments->n; s++) {
        int p = first + s;
        struct cuda_segment *segment = &segments->at[s];
        segment->n = me->param[p].n;
        launch.n = segment->n > launch.n ? segment->n : launch.n;
        for (int i = 0; i < me->n_in; i++) {
            segment->in[i] = in[N_LEAD + p * me->n_in + i];
            ranges[launch.n_ranges++] = (struct cuda_range){segment->in[i], me->param[p].n_bytes, false};
        }
        for (int o = 0; o < me->n_out; o++) {
            segment->out[o] = out[p * me->n_out + o];
            ranges[launch.n_ranges++] = (struct cuda_range){segment->out[o], me->param[p].n_bytes, true};
        }
    }
    return cuda_launch(me->device, &launch);
}

static cvy_status run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct optimizer *me = (struct optimizer *)kernel;
    struct cuda_range lead = {in[0], 2 * sizeof(float), false};
    if (me->has_rates) {
        CVY_TRY(find_rates(me, in[0], scratch));
        lead = (struct cuda_range){scratch, N_RATES * sizeof(float), false};
    }
    me->args.in[0] = lead.at;
    for (int first = 0; first < me->n_params; first += CUDA_SEGMENTS) {
        int left = me->n_params - first;
        struct cuda_segments segments = {.n = left < CUDA_SEGMENTS ? left : CUDA_SEGMENTS};
        CVY_TRY(run_segments(me, first, &segments, lead, in, out));
    }
    return CVY_OK;
}

/* ---- the optimisers ------------------------------------------------------------------------------------------- */

static cvy_status prepare_sgd(struct cvy_device *device, const struct cvy_call *call, struct cvy_kernel **out,
                              size_t *scratch_bytes) {
    const struct cvy_sgd_attrs *attrs = call->attrs;
    struct optimizer *me;
    CVY_TRY(prepare(device, call, &cuda_kernel_sgd, &me));
    me->function = CUDA_sgd;
    me->args = (struct cuda_args){
        .dim = {attrs->nesterov},
        .number = {(float)attrs->momentum, (float)(1 - attrs->dampening), (float)attrs->weight_decay}};
    *scratch_bytes = 0;
    *out = &me->base;
    return CVY_OK;
}

/* Either kind of weight decay: what shrinks the parameter, what joins the gradient. */
static cvy_status prepare_moments(struct cvy_device *device, const struct cvy_call *call,
                                  const struct cvy_kernel_impl *impl, double shrinks, double joins,
                                  struct cvy_kernel **out) {
    const struct cvy_adam_attrs *attrs = call->attrs;
    struct optimizer *me;
    CVY_TRY(prepare(device, call, impl, &me));
    me->function = CUDA_adam;
    me->has_rates = true;
    me->args = (struct cuda_args){.number = {(float)attrs->beta1, (float)(1 - attrs->beta1),
                                             (float)attrs->beta2, (float)(1 - attrs->beta2),
                                             (float)attrs->eps, (float)shrinks, (float)joins}};
    *out = &me->base;
    return CVY_OK;
}

static cvy_status prepare_adam(struct cvy_device *device, const struct cvy_call *call,
                               struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_adam_attrs *attrs = call->attrs;
    *scratch_bytes = N_RATES * sizeof(float);
    return prepare_moments(device, call, &cuda_kernel_adam, 0, attrs->weight_decay, out);
}

static cvy_status prepare_adamw(struct cvy_device *device, const struct cvy_call *call,
                                struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_adam_attrs *attrs = call->attrs;
    *scratch_bytes = N_RATES * sizeof(float);
    return prepare_moments(device, call, &cuda_kernel_adamw, attrs->weight_decay, 0, out);
}

static cvy_status prepare_rmsprop(struct cvy_device *device, const struct cvy_call *call,
                                  struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_rmsprop_attrs *attrs = call->attrs;
    struct optimizer *me;
    CVY_TRY(prepare(device, call, &cuda_kernel_rmsprop, &me));
    me->function = CUDA_rmsprop;
    me->args =
        (struct cuda_args){.number = {(float)attrs->alpha, (float)(1 - attrs->alpha), (float)attrs->eps,
                                      (float)attrs->momentum, (float)attrs->weight_decay}};
    *scratch_bytes = 0;
    *out = &me->base;
    return CVY_OK;
}

#define OPTIMIZER_KERNEL(NAME)                          \
    const struct cvy_kernel_impl cuda_kernel_##NAME = { \
        .op = #NAME,                                    \
        .supports = cuda_supports_f32,                  \
        .choose = choose,                               \
        .prepare = prepare_##NAME,                      \
        .run = run,                                     \
        .release = release,                             \
    };
OPTIMIZER_KERNEL(sgd)
OPTIMIZER_KERNEL(adamw)
OPTIMIZER_KERNEL(adam)
OPTIMIZER_KERNEL(rmsprop)

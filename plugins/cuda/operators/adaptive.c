/* The optimisers whose step depends on norms of the whole parameter, lars and lamb, over a bucket of parameters, in
   whatever layout a parameter and its states have: for each parameter a fold that leaves its ratio in the workspace,
   then the updates, many parameters to a launch. */
#include "operator.h"

#include "base/mem.h"
#include "ops/optimizer.h"

#include <stdlib.h>

enum { N_LEAD = 1, N_RATES = 3, ALIGNMENT = 64 };

struct adaptive {
    struct cvy_kernel base;
    struct cuda_device *device;
    const char *name;
    struct cuda_args args;
    int n_params, n_in, n_out; /* n_in, n_out: of a group */
    size_t partial_at,
        partial_bytes; /* in the workspace: rates, ratios, partial sums of the fold that runs */
    struct {
        int64_t n;
        size_t n_bytes; /* of each of its tensors */
    } param[];
};

/* A run: its operands, without the lead, and the workspace. */
struct run {
    struct adaptive *me;
    void *const *in, *const *out;
    char *scratch;
    struct cuda_range lead;
};

static float *ratio_of(const struct run *run, int p) {
    return (float *)(void *)(run->scratch + ALIGNMENT) + p;
}

static struct cuda_range range_in(const struct run *run, int p, int i) {
    return (struct cuda_range){run->in[p * run->me->n_in + i], run->me->param[p].n_bytes, false};
}

static struct cuda_range range_out(const struct run *run, int p, int o, bool is_write) {
    return (struct cuda_range){run->out[p * run->me->n_out + o], run->me->param[p].n_bytes, is_write};
}

/* ---- launches ------------------------------------------------------------------------------------------------- */

static cvy_status find_rates(struct run *run) {
    struct cuda_args args = run->me->args;
    args.in[0] = run->lead.at;
    args.out[0] = run->scratch;
    const struct cuda_range ranges[] = {run->lead, {run->scratch, N_RATES * sizeof(float), true}};
    run->lead = (struct cuda_range){run->scratch, N_RATES * sizeof(float), false};
    return cuda_launch(run->me->device, &(struct cuda_launch){.function = CUDA_lamb_rates,
                                                              .name = run->me->name,
                                                              .args = &args,
                                                              .n = 1,
                                                              .n_ranges = 2,
                                                              .ranges = ranges});
}

/* The ratio of parameter p, from n operands: behind the lead, unless that is of no use. */
static cvy_status find_ratio(const struct run *run, int p, enum cuda_function function, bool has_lead,
                             const struct cuda_range *operands, int n) {
    const struct adaptive *me = run->me;
    struct cuda_args args = me->args;
    struct cuda_range ranges[CUDA_ARGS_IN + 2];
    int k = 0;
    if (has_lead)
        ranges[k++] = run->lead;
    for (int i = 0; i < n; i++)
        ranges[k++] = operands[i];
    for (int i = 0; i < k; i++)
        args.in[i] = ranges[i].at;
    args.out[0] = ratio_of(run, p);
    ranges[k++] = (struct cuda_range){args.out[0], sizeof(float), true};
    struct cuda_launch launch = {.function = function,
                                 .name = me->name,
                                 .args = &args,
                                 .n = 1,
                                 .row = me->param[p].n,
                                 .ranges = ranges};
    if (me->partial_bytes) {
        launch.partial = (float *)(void *)(run->scratch + me->partial_at);
        ranges[k++] = (struct cuda_range){launch.partial, me->partial_bytes, true};
    }
    launch.n_ranges = k;
    return cuda_launch(me->device, &launch);
}

/* What a launch of updates takes and leaves of parameter p. */
typedef void list_operands(const struct run *run, int p, struct cuda_range in[CUDA_SEGMENT_IN],
                           struct cuda_range out[CUDA_SEGMENT_OUT]);

static cvy_status run_segments(const struct run *run, int first, int n, enum cuda_function function,
                               list_operands *list) {
    const struct adaptive *me = run->me;
    struct cuda_args args = me->args;
    struct cuda_segments segments = {.n = n};
    struct cuda_range ranges[1 + CUDA_SEGMENTS * (CUDA_SEGMENT_IN + CUDA_SEGMENT_OUT)] = {run->lead};
    struct cuda_launch launch = {.function = function,
                                 .name = me->name,
                                 .args = &args,
                                 .segments = &segments,
                                 .n_ranges = 1,
                                 .ranges = ranges};
    args.in[0] = run->lead.at;
    for (int s = 0; s < n; s++) {
        struct cuda_range in[CUDA_SEGMENT_IN] = {{0}}, out[CUDA_SEGMENT_OUT] = {{0}};
        struct cuda_segment *segment = &segments.at[s];
        segment->n = me->param[first + s].n;
        launch.n = segment->n > launch.n ? segment->n : launch.n;
        list(run, first + s, in, out);
        for (int i = 0; i < CUDA_SEGMENT_IN; i++) {
            segment->in[i] = in[i].at;
            if (in[i].at)
                ranges[launch.n_ranges++] = in[i];
        }
        for (int o = 0; o < CUDA_SEGMENT_OUT; o++) {
            segment->out[o] = (void *)out[o].at;
            if (out[o].at)
                ranges[launch.n_ranges++] = out[o];
        }
    }
    return cuda_launch(me->device, &launch);
}

static cvy_status update(const struct run *run, enum cuda_function function, list_operands *list) {
    for (int first = 0; first < run->me->n_params; first += CUDA_SEGMENTS) {
        int left = run->me->n_params - first;
        CVY_TRY(run_segments(run, first, left < CUDA_SEGMENTS ? left : CUDA_SEGMENTS, function, list));
    }
    return CVY_OK;
}

static struct run begin(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    return (struct run){.me = (struct adaptive *)kernel,
                        .in = in + N_LEAD,
                        .out = out,
                        .scratch = scratch,
                        .lead = {in[0], 2 * sizeof(float), false}};
}

static struct cuda_range range_ratio(const struct run *run, int p) {
    return (struct cuda_range){ratio_of(run, p), sizeof(float), false};
}

/* ---- lars ----------------------------------------------------------------------------------------------------- */

static void list_lars(const struct run *run, int p, struct cuda_range *in, struct cuda_range *out) {
    for (int i = 0; i < 3; i++) /* param, grad, buffer */
        in[i] = range_in(run, p, i);
    in[3] = range_ratio(run, p);
    for (int o = 0; o < 2; o++)
        out[o] = range_out(run, p, o, true);
}

static cvy_status run_lars(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct run run = begin(kernel, in, out, scratch);
    for (int p = 0; p < run.me->n_params; p++) {
        const struct cuda_range operands[] = {range_in(&run, p, 0), range_in(&run, p, 1)};
        CVY_TRY(find_ratio(&run, p, CUDA_lars_ratio, false, operands, 2));
    }
    return update(&run, CUDA_lars, list_lars);
}

/* ---- lamb ----------------------------------------------------------------------------------------------------- */

static void list_moments(const struct run *run, int p, struct cuda_range *in, struct cuda_range *out) {
    for (int i = 0; i < 3; i++) /* grad, m, v */
        in[i] = range_in(run, p, 1 + i);
    for (int o = 0; o < 2; o++)
        out[o] = range_out(run, p, 1 + o, true);
}

static void list_lamb(const struct run *run, int p, struct cuda_range *in, struct cuda_range *out) {
    in[0] = range_in(run, p, 0);
    for (int o = 1; o < 3; o++) /* the new m and v */
        in[o] = range_out(run, p, o, false);
    in[3] = range_ratio(run, p);
    out[0] = range_out(run, p, 0, true);
}

static cvy_status run_lamb(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    struct run run = begin(kernel, in, out, scratch);
    CVY_TRY(find_rates(&run));
    CVY_TRY(update(&run, CUDA_lamb_moments, list_moments));
    for (int p = 0; p < run.me->n_params; p++) {
        const struct cuda_range operands[] = {range_in(&run, p, 0), range_out(&run, p, 1, false),
                                              range_out(&run, p, 2, false)};
        CVY_TRY(find_ratio(&run, p, CUDA_lamb_ratio, true, operands, 3));
    }
    return update(&run, CUDA_lamb, list_lamb);
}

/* ---- slots ---------------------------------------------------------------------------------------------------- */

/* Every group lies as its parameter does. */
static cvy_status choose(struct cvy_device *device, struct cvy_call *call) {
    (void)device;
    for (int i = N_LEAD; i < call->n_in; i++)
        call->in[i].layout = call->in[i - (i - N_LEAD) % call->op->n_in].layout;
    for (int o = 0; o < call->n_out; o++)
        call->out[o].layout = call->in[N_LEAD + o / call->op->n_out * call->op->n_in].layout;
    return CVY_OK;
}

static cvy_status prepare(struct cvy_device *device, const struct cvy_call *call, struct cuda_args args,
                          const struct cvy_kernel_impl *impl, struct cvy_kernel **out,
                          size_t *scratch_bytes) {
    struct adaptive *me;
    int n_params = (call->n_in - N_LEAD) / call->op->n_in;
    void *memory;
    CVY_TRY(cvy_alloc_items(1, sizeof *me + (size_t)n_params * sizeof me->param[0], &memory));
    me = memory;
    me->base.impl = impl;
    me->device = cuda_device(device);
    me->name = call->op->name;
    me->args = args;
    me->n_params = n_params;
    me->n_in = call->op->n_in;
    me->n_out = call->op->n_out;
    for (int p = 0; p < n_params; p++) {
        const struct cvy_operand_spec *param = &call->in[N_LEAD + p * me->n_in];
        me->param[p].n = cvy_shape_count(&param->desc.shape);
        me->param[p].n_bytes = cuda_layout_bytes(param->layout, &param->desc);
        struct cuda_fold fold = cuda_fold_of(1, me->param[p].n, false);
        size_t n_bytes = cuda_fold_bytes(&fold);
        me->partial_bytes = n_bytes > me->partial_bytes ? n_bytes : me->partial_bytes;
    }
    size_t ratios = ((size_t)n_params * sizeof(float) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    me->partial_at = ALIGNMENT + ratios;
    *scratch_bytes = me->partial_at + me->partial_bytes;
    *out = &me->base;
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) { free(kernel); }

static cvy_status prepare_lars(struct cvy_device *device, const struct cvy_call *call,
                               struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_lars_attrs *attrs = call->attrs;
    const struct cuda_args args = {.dim = {attrs->nesterov},
                                   .number = {(float)attrs->momentum, (float)(1 - attrs->dampening),
                                              (float)attrs->weight_decay, (float)attrs->trust_coefficient,
                                              (float)attrs->eps}};
    return prepare(device, call, args, &cuda_kernel_lars, out, scratch_bytes);
}

static cvy_status prepare_lamb(struct cvy_device *device, const struct cvy_call *call,
                               struct cvy_kernel **out, size_t *scratch_bytes) {
    const struct cvy_adam_attrs *attrs = call->attrs;
    const struct cuda_args args = {.number = {(float)attrs->beta1, (float)(1 - attrs->beta1),
                                              (float)attrs->beta2, (float)(1 - attrs->beta2),
                                              (float)attrs->eps, (float)attrs->weight_decay}};
    return prepare(device, call, args, &cuda_kernel_lamb, out, scratch_bytes);
}

#define ADAPTIVE_KERNEL(NAME)                           \
    const struct cvy_kernel_impl cuda_kernel_##NAME = { \
        .op = #NAME,                                    \
        .supports = cuda_supports_f32,                  \
        .choose = choose,                               \
        .prepare = prepare_##NAME,                      \
        .run = run_##NAME,                              \
        .release = release,                             \
    };
ADAPTIVE_KERNEL(lars)
ADAPTIVE_KERNEL(lamb)

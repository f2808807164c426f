/* The public layer functions: a layer declares its parameters, with torch.nn's names, shapes and initial
   distributions, and adds its operator. Operators are added by name, through cvy_apply.
   Invariant: a call on a graph that has an error does nothing and returns CVY_NONE. */
#include "models/layers.h"
#include "models/models.h"

#include "ops/batch_norm.h"
#include "ops/cross_entropy.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static const struct cvy_init ZERO = {CVY_INIT_ZERO, 0}, ONE = {CVY_INIT_ONE, 0};

cvy_value cvy_builder_result(struct cvy_graph *g, cvy_status status, cvy_value v) {
    if (status == CVY_OK)
        return v;
    if (g->error.code == CVY_OK)
        cvy_error_save(&g->error, status);
    return CVY_NONE;
}

const char *cvy_layer_name(struct cvy_graph *g, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *name = NULL;
    cvy_status status = n >= 0 && (size_t)n < sizeof text
                            ? cvy_pool_strdup(&g->pool, text, &name)
                            : CVY_FAIL(CVY_ERR_USAGE, "layer name '%s…' is too long: at most %zu bytes", text,
                                       sizeof text - 1);
    cvy_builder_result(g, status, CVY_NONE);
    return name;
}

/* The layer's own name, or for a nameless one the first of KIND, KIND#2, … whose weight is not taken. */
static const char *choose_name(struct cvy_graph *g, const char *given, const char *kind) {
    if (given)
        return given;
    const char *name = kind;
    for (int i = 2; name; i++) {
        const char *weight = cvy_layer_name(g, "%s.weight", name);
        if (!weight || cvy_graph_find(g, weight) == CVY_NONE)
            break;
        name = cvy_layer_name(g, "%s#%d", kind, i);
    }
    return name;
}

/* Adds the parameter or buffer LAYER.FIELD. */
static cvy_value declare(struct cvy_graph *g, enum cvy_value_kind kind, const char *layer, const char *field,
                         struct cvy_desc desc, struct cvy_init init) {
    const char *name = cvy_layer_name(g, "%s.%s", layer, field);
    if (!name)
        return CVY_NONE;
    cvy_value v = CVY_NONE;
    cvy_status status = cvy_graph_add_value(g, name, &desc, kind, &v);
    if (status == CVY_OK)
        cvy_graph_value(g, v)->init = init;
    return cvy_builder_result(g, status, v);
}

cvy_value cvy_layer_parameter(struct cvy_graph *g, const char *layer, const char *field,
                              struct cvy_shape shape, struct cvy_init init) {
    return declare(g, CVY_VALUE_PARAM, layer, field, (struct cvy_desc){CVY_F32, shape}, init);
}

/* Adds the operator with attributes as text; the first of its outputs. */
__attribute__((format(printf, 6, 7))) static cvy_value apply(struct cvy_graph *g, const char *op,
                                                             const char *name, const cvy_value *in, int n_in,
                                                             const char *format, ...) {
    char attributes[256]; /* numbers of bounded width only */
    va_list args;
    va_start(args, format);
    vsnprintf(attributes, sizeof attributes, format, args);
    va_end(args);
    return cvy_apply(g, op, name, in, n_in, attributes);
}

/* Output k of the node that made v. */
static cvy_value sibling(const struct cvy_graph *g, cvy_value v, int k) {
    return v == CVY_NONE ? CVY_NONE : g->nodes.data[cvy_graph_value(g, v)->node].out[k];
}

/* x's shape, which must have at least `rank` dimensions; false: the graph has an error now. */
static bool input_shape(struct cvy_graph *g, const char *layer, cvy_value x, int rank,
                        struct cvy_shape *out) {
    if (g->error.code != CVY_OK)
        return false;
    cvy_status status = CVY_OK;
    if (x < 0 || (size_t)x >= g->values.n)
        status = CVY_FAIL(CVY_ERR_USAGE, "%s: its input is not a value of this graph", layer);
    else if (cvy_graph_value(g, x)->desc.shape.n < rank)
        status = CVY_FAIL(CVY_ERR_USAGE, "%s: its input %s has %d dimensions, at least %d are needed", layer,
                          cvy_graph_value(g, x)->name, cvy_graph_value(g, x)->desc.shape.n, rank);
    else
        *out = cvy_graph_value(g, x)->desc.shape;
    cvy_builder_result(g, status, CVY_NONE);
    return status == CVY_OK;
}

static bool is_positive(struct cvy_graph *g, const char *layer, const char *what, int64_t n) {
    if (n >= 1)
        return true;
    cvy_builder_result(
        g, CVY_FAIL(CVY_ERR_USAGE, "%s: %s is %" PRId64 ", it must be at least 1", layer, what, n), CVY_NONE);
    return false;
}

static int64_t or_default(int64_t given, int64_t initial) { return given == 0 ? initial : given; }

/* torch.nn's kaiming_uniform_(a = sqrt(5)): the bound sqrt(6 / ((1 + 5) fan_in)) = 1 / sqrt(fan_in), which its
   biases have too. An empty layer has no values to draw. */
static struct cvy_init uniform_fan_in(double fan_in) {
    return (struct cvy_init){CVY_INIT_UNIFORM, fan_in > 0 ? 1 / sqrt(fan_in) : 0};
}

/* ---- layers with parameters ---------------------------------------------------------------------- */

cvy_value cvy_conv2d_init(struct cvy_graph *g, cvy_value x, const cvy_conv2d_args *args,
                          const struct cvy_init *weight_init, const struct cvy_init *bias_init) {
    const char *name = choose_name(g, args->name, "conv2d");
    struct cvy_shape shape;
    int64_t kh = or_default(args->kernel_hw[0], args->kernel),
            kw = or_default(args->kernel_hw[1], args->kernel);
    int64_t stride = or_default(args->stride, 1), dilation = or_default(args->dilation, 1);
    int64_t groups = or_default(args->groups, 1), n_out = args->out_channels;
    if (!name || !input_shape(g, name, x, 4, &shape) || !is_positive(g, name, "out_channels", n_out) ||
        !is_positive(g, name, "kernel", kh) || !is_positive(g, name, "kernel", kw) ||
        !is_positive(g, name, "groups", groups))
        return CVY_NONE;

    int64_t group_in = shape.dim[1] / groups; /* the operator refuses groups that do not divide */
    struct cvy_init init = uniform_fan_in((double)group_in * (double)kh * (double)kw);
    cvy_value in[3] = {x};
    in[1] = declare(g, CVY_VALUE_PARAM, name, "weight",
                    (struct cvy_desc){CVY_F32, CVY_SHAPE(n_out, group_in, kh, kw)},
                    weight_init ? *weight_init : init);
    if (!args->no_bias)
        in[2] = declare(g, CVY_VALUE_PARAM, name, "bias", (struct cvy_desc){CVY_F32, CVY_SHAPE(n_out)},
                        bias_init ? *bias_init : init);
    return apply(g, "conv2d", name, in, args->no_bias ? 2 : 3,
                 "kernel=%" PRId64 "x%" PRId64 " stride=%" PRId64 " padding=%" PRId64 " dilation=%" PRId64
                 " groups=%" PRId64,
                 kh, kw, stride, args->padding, dilation, groups);
}

cvy_value cvy_conv2d(cvy_graph *g, cvy_value x, const cvy_conv2d_args *args) {
    return cvy_conv2d_init(g, x, args, NULL, NULL);
}

cvy_value cvy_linear_init(struct cvy_graph *g, cvy_value x, const cvy_linear_args *args,
                          const struct cvy_init *weight_init, const struct cvy_init *bias_init) {
    const char *name = choose_name(g, args->name, "linear");
    struct cvy_shape shape;
    int64_t n_out = args->out_features;
    if (!name || !input_shape(g, name, x, 1, &shape) || !is_positive(g, name, "out_features", n_out))
        return CVY_NONE;

    int64_t n_in = shape.dim[shape.n - 1];
    struct cvy_init init = uniform_fan_in((double)n_in);
    cvy_value in[3] = {x};
    in[1] = declare(g, CVY_VALUE_PARAM, name, "weight", (struct cvy_desc){CVY_F32, CVY_SHAPE(n_out, n_in)},
                    weight_init ? *weight_init : init);
    if (!args->no_bias)
        in[2] = declare(g, CVY_VALUE_PARAM, name, "bias", (struct cvy_desc){CVY_F32, CVY_SHAPE(n_out)},
                        bias_init ? *bias_init : init);
    return cvy_apply(g, "linear", name, in, args->no_bias ? 2 : 3, NULL);
}

cvy_value cvy_linear(cvy_graph *g, cvy_value x, const cvy_linear_args *args) {
    return cvy_linear_init(g, x, args, NULL, NULL);
}

/* The running statistics advance once per step, from the statistics of all shards. in: running_mean,
   running_var, num_batches_tracked, stats. */
static void add_statistics_update(struct cvy_graph *g, const char *name, const cvy_value *in,
                                  double momentum) {
    if (g->error.code != CVY_OK)
        return;
    struct cvy_batch_norm_attrs attrs;
    const struct cvy_node_spec spec = {.op = cvy_op_find("batch_norm_update"),
                                       .name = name,
                                       .attrs = &attrs,
                                       .in = in,
                                       .n_in = 4,
                                       .phase = CVY_PHASE_UPDATE,
                                       .stage = g->stage};
    cvy_attrs_default(spec.op, &attrs);
    attrs.momentum = momentum;
    cvy_builder_result(g, cvy_graph_add_node(g, &spec, NULL), CVY_NONE);
}

cvy_value cvy_batch_norm(cvy_graph *g, cvy_value x, const cvy_batch_norm_args *args) {
    const char *name = choose_name(g, args->name, "batch_norm");
    struct cvy_shape shape;
    if (!name || !input_shape(g, name, x, 2, &shape))
        return CVY_NONE;
    const struct cvy_desc per_channel = {CVY_F32, CVY_SHAPE(shape.dim[1])}, scalar = {.dtype = CVY_I64};
    const cvy_value in[] = {
        x,
        declare(g, CVY_VALUE_PARAM, name, "weight", per_channel, ONE),
        declare(g, CVY_VALUE_PARAM, name, "bias", per_channel, ZERO),
        declare(g, CVY_VALUE_BUFFER, name, "running_mean", per_channel, ZERO),
        declare(g, CVY_VALUE_BUFFER, name, "running_var", per_channel, ONE),
    };
    cvy_value n_batches = declare(g, CVY_VALUE_BUFFER, name, "num_batches_tracked", scalar, ZERO);
    double momentum = args->momentum == 0 ? 0.1 : args->momentum;
    cvy_value y = apply(g, "batch_norm", name, in, 5, "eps=%.17g momentum=%.17g",
                        args->eps == 0 ? 1e-5 : args->eps, momentum);
    add_statistics_update(
        g, name, (cvy_value[]){in[3], in[4], n_batches, sibling(g, y, CVY_BATCH_NORM_STATS)}, momentum);
    return y;
}

cvy_value cvy_layer_norm(cvy_graph *g, cvy_value x, const cvy_layer_norm_args *args) {
    const char *name = choose_name(g, args->name, "layer_norm");
    struct cvy_shape shape;
    if (!name || !input_shape(g, name, x, 2, &shape))
        return CVY_NONE;
    const struct cvy_desc per_channel = {CVY_F32, CVY_SHAPE(shape.dim[1])};
    const cvy_value in[] = {x, declare(g, CVY_VALUE_PARAM, name, "weight", per_channel, ONE),
                            declare(g, CVY_VALUE_PARAM, name, "bias", per_channel, ZERO)};
    return apply(g, "layer_norm", name, in, 3, "eps=%.17g", args->eps == 0 ? 1e-5 : args->eps);
}

/* ---- layers without ------------------------------------------------------------------------------ */

static cvy_value pool(struct cvy_graph *g, const char *op, cvy_value x, const cvy_pool_args *args,
                      const char *more) {
    const char *name = args->name ? args->name : op;
    int64_t kernel = args->kernel, stride = or_default(args->stride, kernel);
    if (g->error.code != CVY_OK || !is_positive(g, name, "kernel", kernel))
        return CVY_NONE;
    return apply(g, op, name, &x, 1,
                 "kernel=%" PRId64 " stride=%" PRId64 " padding=%" PRId64 " ceil_mode=%s%s", kernel, stride,
                 args->padding, args->ceil_mode ? "true" : "false", more);
}

cvy_value cvy_max_pool(cvy_graph *g, cvy_value x, const cvy_pool_args *args) {
    return pool(g, "max_pool", x, args, "");
}

cvy_value cvy_avg_pool(cvy_graph *g, cvy_value x, const cvy_pool_args *args) {
    return pool(g, "avg_pool", x, args, args->exclude_padding ? " count_include_pad=false" : "");
}

cvy_value cvy_adaptive_avg_pool(cvy_graph *g, cvy_value x, int64_t height, int64_t width) {
    return apply(g, "adaptive_avg_pool", "adaptive_avg_pool", &x, 1, "output=%" PRId64 "x%" PRId64, height,
                 width);
}

/* Operators of one input and no attributes are layers of the same name. */
static cvy_value unary(struct cvy_graph *g, const char *op, cvy_value x) {
    return cvy_apply(g, op, op, &x, 1, NULL);
}

cvy_value cvy_relu(cvy_graph *g, cvy_value x) { return unary(g, "relu", x); }
cvy_value cvy_flatten(cvy_graph *g, cvy_value x) { return unary(g, "flatten", x); }
cvy_value cvy_softmax(cvy_graph *g, cvy_value x) { return unary(g, "softmax", x); }
cvy_value cvy_mean(cvy_graph *g, cvy_value x) { return unary(g, "mean", x); }

cvy_value cvy_add(cvy_graph *g, cvy_value a, cvy_value b) {
    return cvy_apply(g, "add", "add", (cvy_value[]){a, b}, 2, NULL);
}

/* An input that the host sets and that has no batch dimension. */
static cvy_value host_input(struct cvy_graph *g, const char *name, struct cvy_desc desc) {
    cvy_value v = CVY_NONE;
    if (g->error.code != CVY_OK)
        return CVY_NONE;
    cvy_status status = cvy_graph_host_input(g, name, &desc, false, &v);
    return cvy_builder_result(g, status, v);
}

static cvy_value dropout(struct cvy_graph *g, cvy_value x, double p, const char *name, const char *more) {
    /* the generator's counters: seed, step, first image of the shard */
    const cvy_value in[] = {x, host_input(g, "rng", (struct cvy_desc){CVY_I64, CVY_SHAPE(3)})};
    /* the id that the node is about to get keys its numbers */
    return apply(g, "dropout", name, in, 2, "p=%.17g id=%" PRIu32 "%s", p, g->next_id, more);
}

cvy_value cvy_dropout(cvy_graph *g, cvy_value x, double p) { return dropout(g, x, p, "dropout", ""); }

cvy_value cvy_stochastic_depth(struct cvy_graph *g, cvy_value x, double p) {
    return p == 0 ? x : dropout(g, x, p, "stochastic_depth", " per_image=true");
}

/* ---- losses -------------------------------------------------------------------------------------- */

/* The global batch size, by which every shard divides its sums. */
static cvy_value divisor(struct cvy_graph *g) {
    return host_input(g, "divisor", (struct cvy_desc){CVY_F32, CVY_SHAPE(1)});
}

cvy_value cvy_batch_mean(cvy_graph *g, cvy_value x) {
    return cvy_apply(g, "batch_mean", "batch_mean", (cvy_value[]){x, divisor(g)}, 2, NULL);
}

/* Names the outputs of a classifier's loss, and adds its accuracy. */
static cvy_value name_losses(struct cvy_graph *g, cvy_value loss, cvy_value logits, cvy_value labels) {
    cvy_value ranks = cvy_apply(g, "accuracy", "accuracy", (cvy_value[]){logits, labels}, 2, NULL);
    if (ranks == CVY_NONE)
        return CVY_NONE;
    cvy_output(g, "loss", loss);
    cvy_output(g, "losses", sibling(g, loss, CVY_CROSS_ENTROPY_LOSSES));
    cvy_output(g, "ranks", ranks);
    cvy_output(g, "hits", sibling(g, ranks, CVY_ACCURACY_HITS));
    return loss;
}

void cvy_auxiliary_head(struct cvy_graph *g, size_t first_value, cvy_value logits, double weight) {
    for (size_t v = first_value; v < g->values.n; v++) {
        struct cvy_value_info *info = &g->values.data[v];
        info->is_auxiliary = info->kind == CVY_VALUE_PARAM || info->kind == CVY_VALUE_BUFFER;
    }
    if (g->error.code == CVY_OK)
        cvy_builder_result(g, cvy_vec_push(&g->auxiliaries, (struct cvy_auxiliary){logits, weight}),
                           CVY_NONE);
}

/* What logits are held against: labels, or class probabilities. */
struct criterion {
    const char *op;
    cvy_value targets;
    double label_smoothing;
};

static cvy_value loss_of(struct cvy_graph *g, const struct criterion *c, const char *name, cvy_value logits) {
    return apply(g, c->op, name, (cvy_value[]){logits, c->targets, divisor(g)}, 3, "label_smoothing=%.17g",
                 c->label_smoothing);
}

/* The loss, and what each auxiliary head adds to it; the other outputs are the model's own. */
static cvy_value add_losses(struct cvy_graph *g, const struct criterion *c, cvy_value logits,
                            cvy_value labels) {
    cvy_value total = name_losses(g, loss_of(g, c, "cross_entropy", logits), logits, labels);
    if (g->auxiliaries.n == 0)
        return total;
    for (size_t i = 0; i < g->auxiliaries.n; i++) {
        const struct cvy_auxiliary *head = &g->auxiliaries.data[i];
        const cvy_value in[] = {
            loss_of(g, c, "auxiliary", head->logits),
            apply(g, "constant", "auxiliary.weight", NULL, 0, "value=%.17g", head->weight)};
        total = cvy_add(g, total, cvy_apply(g, "mul", "auxiliary.weighted", in, 2, NULL));
    }
    g->auxiliaries.n = 0;
    cvy_output(g, "loss", total);
    return total;
}

cvy_value cvy_cross_entropy(cvy_graph *g, cvy_value logits, cvy_value labels, double label_smoothing) {
    const struct criterion c = {"cross_entropy", labels, label_smoothing};
    return add_losses(g, &c, logits, labels);
}

/* The numbers of the step's draw; its operator is the same wherever it is read, so no stage need tell another. */
static cvy_value mix_draw(struct cvy_graph *g, const char *name, const struct cvy_mixing *what) {
    const cvy_value rng = host_input(g, "rng", (struct cvy_desc){CVY_I64, CVY_SHAPE(3)});
    return apply(g, "mix_draw", name, &rng, 1,
                 "mixup_alpha=%.17g cutmix_alpha=%.17g image=%" PRId64 "x%" PRId64, what->mixup_alpha,
                 what->cutmix_alpha, what->height, what->width);
}

cvy_value cvy_mix_images(struct cvy_graph *g, cvy_value images, const struct cvy_mixing *what) {
    const cvy_value in[] = {images, mix_draw(g, "mix.images.draw", what)};
    return cvy_apply(g, "mix", "mix.images", in, 2, NULL);
}

cvy_value cvy_mixed_cross_entropy(struct cvy_graph *g, cvy_value logits, cvy_value labels,
                                  double label_smoothing, const struct cvy_mixing *what) {
    struct cvy_shape shape;
    if (!input_shape(g, "cross_entropy", logits, 2, &shape))
        return CVY_NONE;
    const cvy_value in[] = {labels, mix_draw(g, "mix.labels.draw", what)};
    cvy_value targets = apply(g, "mix_targets", "mix.labels", in, 2, "classes=%" PRId64, shape.dim[1]);
    const struct criterion c = {"soft_cross_entropy", targets, label_smoothing};
    return add_losses(g, &c, logits, labels);
}

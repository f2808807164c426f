/* MixUp (Zhang et al. 2018) and CutMix (Yun et al. 2019), as torchvision has them. mix_draw makes an update's draw, the
   same for all shards; mix mixes each image with the one before it in its shard, mix_targets their labels.
   The numbers are those of cvy_rng_init(seed, CVY_RNG_MIX, step, 0), four at each position: at 0 which of the two, and
   what the shares below 1 of the two gamma variates are raised from; at 1 the box's centre; at 2 + 2 t + i try t of
   variate i (Marsaglia and Tsang 2000). Beta(alpha, alpha) is g0 / (g0 + g1). */
#include "ops/mix.h"
#include "base/rng.h"
#include "ops/cases.h"
#include "ops/infer.h"

#include <math.h>

typedef struct cvy_mix_draw_attrs draw_attrs;
typedef struct cvy_mix_targets_attrs targets_attrs;

static const struct cvy_attr draw_table[] = {
    {"mixup_alpha", CVY_ATTR_FLOAT, offsetof(draw_attrs, mixup_alpha), 0, 0, 1e6, "of MixUp; 0: no MixUp"},
    {"cutmix_alpha", CVY_ATTR_FLOAT, offsetof(draw_attrs, cutmix_alpha), 0, 0, 1e6,
     "of CutMix; 0: no CutMix"},
    {"image", CVY_ATTR_PAIR, offsetof(draw_attrs, image), 1, 1, CVY_MAX_SIZE,
     "height and width of the images"},
    {"training", CVY_ATTR_BOOL, offsetof(draw_attrs, training), 1, 0, 1, "false: nothing is mixed"},
};

static const struct cvy_attr targets_table[] = {
    {"classes", CVY_ATTR_INT, offsetof(targets_attrs, classes), 1, 1, INT32_MAX,
     "how many classes there are"},
};

static const struct cvy_shape rng_shape = {.n = 1, .dim = {3}}; /* seed, step, first image of the shard */
static const struct cvy_shape draw_shape = {.n = 1, .dim = {CVY_MIX_DRAW}};

/* ---- the draw ------------------------------------------------------------------------------------ */

enum { TRIES = 64 }; /* each is good with a probability of 0.95 */

static double above_0(uint32_t number) { return (number + 1.0) * 0x1p-32; }

/* A gamma variate; for a shape below 1 that of shape + 1, times u^(1 / shape). */
static double gamma_variate(const struct cvy_rng *rng, double shape, int i, double u) {
    double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / sqrt(9 * d), v = 1;
    for (uint64_t t = 0; t < TRIES; t++) {
        uint32_t number[4];
        cvy_rng_at(rng, 2 + 2 * t + (uint64_t)i, number);
        double x = sqrt(-2 * log(above_0(number[0]))) * cos(6.283185307179586476925 * number[1] * 0x1p-32);
        v = (1 + c * x) * (1 + c * x) * (1 + c * x);
        if (v > 0 && log(above_0(number[2])) < x * x / 2 + d - d * v + d * log(v))
            break;
        v = 1;
    }
    return d * v * (shape < 1 ? pow(u, 1 / shape) : 1);
}

/* CutMix's box has the share 1 - lambda of the image, or less where it is cut off at the border. */
static void draw_box(const int64_t image[2], double lambda, const uint32_t number[2], float *draw) {
    int64_t first[2], end[2];
    for (int axis = 0; axis < 2; axis++) {
        int64_t half = (int64_t)(0.5 * sqrt(1 - lambda) * (double)image[axis]);
        int64_t centre = (int64_t)((uint64_t)image[axis] * number[axis] >> 32);
        first[axis] = centre < half ? 0 : centre - half;
        end[axis] = centre + half < image[axis] ? centre + half : image[axis];
        draw[CVY_MIX_TOP + axis] = (float)first[axis];
        draw[CVY_MIX_BOTTOM + axis] = (float)end[axis];
    }
    double box = (double)(end[0] - first[0]) * (double)(end[1] - first[1]);
    draw[CVY_MIX_SHARE] = (float)(1 - box / ((double)image[0] * (double)image[1]));
    draw[CVY_MIX_PIXELS] = 1;
}

void cvy_mix_draw(const struct cvy_mix_draw_attrs *attrs, uint64_t seed, uint64_t step, float *draw) {
    struct cvy_rng rng;
    uint32_t number[4];
    cvy_rng_init(&rng, seed, CVY_RNG_MIX, step, 0);
    cvy_rng_at(&rng, 0, number);
    bool is_cut = attrs->cutmix_alpha > 0 && (attrs->mixup_alpha == 0 || number[0] >= 1u << 31);
    double alpha = is_cut ? attrs->cutmix_alpha : attrs->mixup_alpha;
    for (int k = 0; k < CVY_MIX_DRAW; k++)
        draw[k] = k < CVY_MIX_TOP;
    if (!attrs->training || alpha == 0)
        return;
    double own = gamma_variate(&rng, alpha, 0, above_0(number[1])),
           other = gamma_variate(&rng, alpha, 1, above_0(number[2]));
    double lambda = own + other > 0 ? own / (own + other) : 1;
    if (is_cut) {
        cvy_rng_at(&rng, 1, number);
        draw_box(attrs->image, lambda, number, draw);
    } else {
        draw[CVY_MIX_SHARE] = draw[CVY_MIX_PIXELS] = (float)lambda;
    }
}

static cvy_status draw_infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_typed(call, 0, CVY_I64, &rng_shape));
    call->out[0] = cvy_desc_make(CVY_F32, draw_shape);
    return CVY_OK;
}

static void draw_reference(const struct cvy_reference *call) {
    float draw[CVY_MIX_DRAW];
    cvy_mix_draw(call->attrs, (uint64_t)call->in[0][0], (uint64_t)call->in[0][1], draw);
    for (int k = 0; k < CVY_MIX_DRAW; k++)
        call->out[0][k] = (double)draw[k];
}

/* ---- images and labels --------------------------------------------------------------------------- */

static cvy_status mix_infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_rank(call, 0, 4));
    CVY_TRY(cvy_infer_float(call, 1, &draw_shape));
    call->out[0] = call->in[0];
    return CVY_OK;
}

static void mix_reference(const struct cvy_reference *call) {
    const struct cvy_shape *x = &call->in_desc[0].shape;
    const double *draw = call->in[1];
    int64_t height = x->dim[2], width = x->dim[3], image = x->dim[1] * height * width;
    for (int64_t i = 0; i < x->dim[0] * image; i++) {
        double row = (double)(i / width % height), column = (double)(i % width), own = draw[CVY_MIX_PIXELS];
        double other = call->in[0][cvy_mix_partner(i / image, x->dim[0]) * image + i % image];
        bool is_inside = row >= draw[CVY_MIX_TOP] && row < draw[CVY_MIX_BOTTOM] &&
                         column >= draw[CVY_MIX_LEFT] && column < draw[CVY_MIX_RIGHT];
        call->out[0][i] = is_inside  ? other
                          : own == 1 ? call->in[0][i]
                                     : own * call->in[0][i] + (1 - own) * other;
    }
}

static cvy_status targets_infer(struct cvy_infer *call) {
    const targets_attrs *attrs = call->attrs;
    CVY_TRY(cvy_infer_float(call, 1, &draw_shape));
    if (call->in[0].shape.n != 1)
        return cvy_infer_fail(call, "labels must be N");
    CVY_TRY(cvy_infer_typed(call, 0, CVY_I64, NULL));
    call->out[0] = cvy_desc_make(CVY_F32, CVY_SHAPE(call->in[0].shape.dim[0], attrs->classes));
    return CVY_OK;
}

/* An image with a label that is no class, or whose partner has one, gets NaN: it is not hidden. */
static void targets_reference(const struct cvy_reference *call) {
    int64_t images = call->in_desc[0].shape.dim[0];
    int64_t classes = ((const targets_attrs *)call->attrs)->classes;
    double share = call->in[1][CVY_MIX_SHARE];
    for (int64_t n = 0; n < images; n++) {
        double own = call->in[0][n], other = call->in[0][cvy_mix_partner(n, images)];
        bool are_classes = own >= 0 && own < (double)classes && other >= 0 && other < (double)classes;
        for (int64_t k = 0; k < classes; k++)
            call->out[0][n * classes + k] =
                are_classes ? share * ((double)k == own) + (1 - share) * ((double)k == other) : NAN;
    }
}

/* ---- cases and descriptors ----------------------------------------------------------------------- */

/* A draw with a box: rows 1 to 3, columns 0 to 3. */
static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    static const double box[] = {1, 0, 4, 4};
    if (desc->dtype == CVY_I64) {
        cvy_fill_below(i, desc, seed, 3, values);
    } else if (i == 0) {
        cvy_fill_normal(i, desc, seed, values);
    } else {
        cvy_fill_uniform(i, desc, seed, 0, 1, values);
        for (int k = 0; k < 4; k++)
            values[CVY_MIX_TOP + k] = box[k];
    }
}

static const struct cvy_case draw_cases[] = {
    {"mixup_alpha=0.2 image=224x200", "i64[3]", 0, fill},
    {"mixup_alpha=1.5", "i64[3]", 0, fill},
    {"cutmix_alpha=1 image=32x40", "i64[3]", 0, fill},
    {"mixup_alpha=0.2 cutmix_alpha=1 image=7x5 training=false", "i64[3]", 0, fill},
};
static const struct cvy_case mix_cases[] = {
    {"", "f32[5,3,6,7] f32[6]", 0, fill},
    {"", "f32[2,1,17,33] f32[6]", 0, fill},
    {"", "f32[1,3,2,2] f32[6]", 0, fill},
};
static const struct cvy_case targets_cases[] = {
    {"classes=3", "i64[5] f32[6]", 0, fill},
    {"classes=1000", "i64[2] f32[6]", 0, fill},
    {"classes=10", "i64[1] f32[6]", 0, fill},
};

const struct cvy_op cvy_op_mix_draw = {
    .name = "mix_draw",
    .help = "an update's shares and box of MixUp or CutMix",
    .attrs_size = sizeof(draw_attrs),
    .attrs = draw_table,
    .n_attrs = CVY_N(draw_table),
    .n_in = 1,
    .n_in_min = 1,
    .n_out = 1,
    .in_names = (const char *const[]){"rng"},
    .out_names = (const char *const[]){"draw"},
    .flags = CVY_OP_RANDOM,
    .infer = draw_infer,
    .reference = draw_reference,
    .cases = draw_cases,
    .n_cases = CVY_N(draw_cases),
};

const struct cvy_op cvy_op_mix = {
    .name = "mix",
    .help = "each image mixed with the one before it in the shard",
    .n_in = 2,
    .n_in_min = 2,
    .n_out = 1,
    .in_names = (const char *const[]){"x", "draw"},
    .out_names = (const char *const[]){"y"},
    .infer = mix_infer,
    .reference = mix_reference,
    .cost = cvy_cost_elementwise,
    .cases = mix_cases,
    .n_cases = CVY_N(mix_cases),
};

const struct cvy_op cvy_op_mix_targets = {
    .name = "mix_targets",
    .help = "class probabilities of mixed images",
    .attrs_size = sizeof(targets_attrs),
    .attrs = targets_table,
    .n_attrs = CVY_N(targets_table),
    .n_in = 2,
    .n_in_min = 2,
    .n_out = 1,
    .in_names = (const char *const[]){"labels", "draw"},
    .out_names = (const char *const[]){"targets"},
    .infer = targets_infer,
    .reference = targets_reference,
    .cost = cvy_cost_elementwise,
    .cases = targets_cases,
    .n_cases = CVY_N(targets_cases),
};

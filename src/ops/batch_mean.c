/* batch_mean, the loss of a shard: the sum over its images divided by the global batch, which the host gives as
   `divisor`. So the sum over shards is the mean over the batch, ragged or not. */
#include "ops/cases.h"
#include "ops/infer.h"

static const struct cvy_shape one = {.n = 1, .dim = {1}};

static cvy_status forward_infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_rank(call, 0, 1));
    CVY_TRY(cvy_infer_float(call, 1, &one));
    call->out[0] = cvy_desc_make(CVY_F32, one);
    return CVY_OK;
}

static cvy_status backward_infer(struct cvy_infer *call) {
    CVY_TRY(cvy_infer_float(call, 0, &one));
    CVY_TRY(cvy_infer_float(call, 1, &one));
    CVY_TRY(cvy_infer_rank(call, 2, 1));
    call->out[0] = call->in[2];
    return CVY_OK;
}

static void forward_reference(const struct cvy_reference *call) {
    double sum = 0;
    for (int64_t n = 0; n < call->in_desc[0].shape.dim[0]; n++)
        sum += call->in[0][n];
    call->out[0][0] = sum / call->in[1][0];
}

static void backward_reference(const struct cvy_reference *call) {
    for (int64_t n = 0; n < call->out_desc[0].shape.dim[0]; n++)
        call->out[0][n] = call->in[0][0] / call->in[1][0];
}

static cvy_status grad(struct cvy_graph *g, const struct cvy_node *node, uint32_t want, const cvy_value *gout,
                       cvy_value *gin) {
    (void)want; /* of x alone: the divisor is the host's */
    return cvy_graph_add_grad(g, node, "batch_mean_backward", NULL,
                              (cvy_value[]){gout[0], node->in[1], node->in[0]}, 3, &gin[0]);
}

static void fill(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    if (i == 1) /* the divisor */
        cvy_fill_uniform(i, desc, seed, 1, 100, values);
    else /* losses: above 0, so that no sum is nearly 0 and its error large beside it */
        cvy_fill_uniform(i, desc, seed, 0.1, 5, values);
}

static const struct cvy_case forward_cases[] = {{"", "f32[1] f32[1]", 0, fill},
                                                {"", "f32[17] f32[1]", 0, fill}};
static const struct cvy_case backward_cases[] = {{"", "f32[1] f32[1] f32[1]", 0, fill},
                                                 {"", "f32[1] f32[1] f32[17]", 0, fill}};

const struct cvy_op cvy_op_batch_mean = {
    .name = "batch_mean",
    .help = "y = sum of x over the images / divisor",
    .n_in = 2,
    .n_in_min = 2,
    .n_out = 1,
    .in_names = (const char *const[]){"x", "divisor"},
    .out_names = (const char *const[]){"y"},
    .infer = forward_infer,
    .grad = grad,
    .reference = forward_reference,
    .cases = forward_cases,
    .n_cases = CVY_N(forward_cases),
};

const struct cvy_op cvy_op_batch_mean_backward = {
    .name = "batch_mean_backward",
    .help = "dx = dy / divisor for each image of x, whose values are not read",
    .n_in = 3,
    .n_in_min = 3,
    .n_out = 1,
    .in_names = (const char *const[]){"dy", "divisor", "x"},
    .out_names = (const char *const[]){"dx"},
    .infer = backward_infer,
    .reference = backward_reference,
    .cases = backward_cases,
    .n_cases = CVY_N(backward_cases),
};

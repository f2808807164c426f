/* batch: does a batch fit the plan? It is looked at before any device works on it, so that a wrong one changes
   nothing and the session can go on with another. */
#include "engine/session.h"

#include <inttypes.h>
#include <math.h>

#define C_H_W "%" PRId64 "x%" PRId64 "x%" PRId64

enum { MAX_CHANNELS = sizeof((cvy_batch *)0)->mean / sizeof(float) };

static cvy_status check_images(const struct cvy_graph *g, const cvy_batch *batch) {
    cvy_value v = cvy_graph_find(g, "images");
    if (v == CVY_NONE)
        return CVY_OK; /* the network looks at none */
    const int64_t *want = cvy_graph_value(g, v)->desc.shape.dim + 1;
    if (!batch->images)
        return CVY_FAIL(CVY_ERR_USAGE, "the batch has no images");
    if (batch->channels != want[0] || batch->height != want[1] || batch->width != want[2])
        return CVY_FAIL(CVY_ERR_USAGE, "the batch has images of " C_H_W ", this model takes " C_H_W,
                        batch->channels, batch->height, batch->width, want[0], want[1], want[2]);
    if (batch->channels > MAX_CHANNELS)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "images have %" PRId64 " channels; at most %d are supported",
                        batch->channels, MAX_CHANNELS);
    if (batch->dtype != CVY_U8 && batch->dtype != CVY_F32)
        return CVY_FAIL(CVY_ERR_USAGE, "the batch's images must be CVY_U8 or CVY_F32, not of type %d",
                        (int)batch->dtype);
    if (batch->order != CVY_NCHW && batch->order != CVY_NHWC)
        return CVY_FAIL(CVY_ERR_USAGE, "the batch's order must be CVY_NCHW or CVY_NHWC, not %d",
                        (int)batch->order);
    return CVY_OK;
}

/* A std that is not given is 1. */
static cvy_status settle_normalisation(cvy_batch *batch) {
    for (int c = 0; c < MAX_CHANNELS; c++) {
        if (!isfinite(batch->mean[c]) || !isfinite(batch->std[c]) || batch->std[c] < 0)
            return CVY_FAIL(CVY_ERR_USAGE, "channel %d of the batch: mean %g and std %g are not usable", c,
                            (double)batch->mean[c], (double)batch->std[c]);
        if (batch->std[c] == 0)
            batch->std[c] = 1;
    }
    return CVY_OK;
}

/* Where there is a score for each class, a label is one of them. */
static cvy_status check_labels(const struct cvy_graph *g, const cvy_batch *batch) {
    cvy_value logits = cvy_graph_output(g, "logits");
    if (cvy_graph_find(g, "labels") == CVY_NONE)
        return CVY_OK;
    if (!batch->labels)
        return CVY_FAIL(CVY_ERR_USAGE, "the batch has no labels, which this model's loss needs");
    if (logits == CVY_NONE || cvy_graph_value(g, logits)->desc.shape.n != 2)
        return CVY_OK;
    int64_t n_classes = cvy_graph_value(g, logits)->desc.shape.dim[1];
    for (int64_t i = 0; i < batch->n; i++) {
        if (batch->labels[i] < 0 || batch->labels[i] >= n_classes)
            return CVY_FAIL(CVY_ERR_DATA,
                            "image %" PRId64 " of the batch has the label %" PRId64
                            ", outside of 0 to %" PRId64,
                            i, batch->labels[i], n_classes - 1);
    }
    return CVY_OK;
}

cvy_status cvy_batch_settle(const struct cvy_plan *plan, const cvy_batch *given, bool is_training,
                            bool needs_labels, cvy_batch *out) {
    *out = *given;
    if (given->n < 1 || given->n > plan->options.batch_size)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "a batch of %" PRId64 " images does not fit this plan, made for up to %" PRId64,
                        given->n, plan->options.batch_size);
    CVY_TRY(check_images(is_training && plan->resized ? plan->resized : plan->built, given));
    CVY_TRY(settle_normalisation(out));
    return needs_labels ? check_labels(plan->built, given) : CVY_OK;
}

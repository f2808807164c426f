/* The table of models, and models by name. */
#include "models/models.h"
#include "models/layers.h"

#include <inttypes.h>
#include <string.h>

#define CVY_MODEL(id) extern const struct cvy_model cvy_model_##id;
#include "models/models.def"
#undef CVY_MODEL

#define CVY_MODEL(id) &cvy_model_##id,
static const struct cvy_model *const TABLE[] = {
#include "models/models.def"
};
#undef CVY_MODEL

enum { N_MODELS = sizeof TABLE / sizeof *TABLE };

const struct cvy_model *const *cvy_model_table(size_t *n) {
    *n = N_MODELS;
    return TABLE;
}

const struct cvy_model *cvy_model_find(const char *name) {
    for (size_t i = 0; i < N_MODELS; i++) {
        if (strcmp(TABLE[i]->name, name) == 0)
            return TABLE[i];
    }
    return NULL;
}

cvy_status cvy_model_unknown(const char *name) {
    const char *names[N_MODELS];
    for (size_t i = 0; i < N_MODELS; i++)
        names[i] = TABLE[i]->name;
    const char *nearest = cvy_nearest(name, names, N_MODELS);
    return CVY_FAIL(CVY_ERR_USAGE, "unknown model '%s'%s%s%s: `convoy models` lists them", name,
                    nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* Whether the model can be built on these images. */
static cvy_status check(const struct cvy_model *model, const struct cvy_graph *g, cvy_value images,
                        int64_t num_classes) {
    if (images < 0 || (size_t)images >= g->values.n)
        return CVY_FAIL(CVY_ERR_USAGE, "%s: its input is not a value of this graph", model->name);
    const struct cvy_shape *shape = &cvy_graph_value(g, images)->desc.shape;
    if (shape->n != 4)
        return CVY_FAIL(CVY_ERR_USAGE, "%s: its input has %d dimensions, it needs images (N,C,H,W)",
                        model->name, shape->n);
    if (shape->dim[1] < 1 || shape->dim[2] < model->min_size || shape->dim[3] < model->min_size)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "%s: images of %" PRId64 "x%" PRId64 "x%" PRId64 " are too small, it needs at least "
                        "1x%" PRId64 "x%" PRId64,
                        model->name, shape->dim[1], shape->dim[2], shape->dim[3], model->min_size,
                        model->min_size);
    if (num_classes < 1)
        return CVY_FAIL(CVY_ERR_USAGE, "%s: number of classes is %" PRId64 ", it must be at least 1",
                        model->name, num_classes);
    return CVY_OK;
}

cvy_value cvy_model(cvy_graph *g, const char *name, cvy_value images, int64_t num_classes) {
    if (g->error.code != CVY_OK)
        return CVY_NONE;
    const struct cvy_model *model = cvy_model_find(name);
    if (!model)
        return cvy_builder_result(g, cvy_model_unknown(name), CVY_NONE);
    cvy_status status = check(model, g, images, num_classes);
    if (status != CVY_OK)
        return cvy_builder_result(g, status, CVY_NONE);
    return model->build(g, images, num_classes);
}

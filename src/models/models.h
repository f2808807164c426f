/* Models: one file each, one line in models.def. */
#ifndef CVY_MODELS_MODELS_H
#define CVY_MODELS_MODELS_H

#include "graph/graph.h"

struct cvy_model {
    const char *name;
    const char *help;
    int64_t channels, height, width; /* natural input */
    int64_t min_size;                /* smallest height and width that work */
    int64_t num_classes;             /* default */
    bool is_classifier;              /* false: `train` refuses it, saying why */
    /* Adds the layers, of the channels and size that `images` has; the logits. Called through cvy_model, which has
       checked min_size and num_classes. */
    cvy_value (*build)(struct cvy_graph *g, cvy_value images, int64_t num_classes);
};

const struct cvy_model *cvy_model_find(const char *name); /* NULL when there is none */
/* CVY_ERR_USAGE that says so, with the nearest name. */
cvy_status cvy_model_unknown(const char *name);
const struct cvy_model *const *cvy_model_table(size_t *n);

#endif

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

/* MixUp and CutMix, each used for half of the updates where both have an alpha above 0 (ops/mix.c). */
struct cvy_mixing {
    double mixup_alpha, cutmix_alpha;
    int64_t height, width; /* of the images */
};
/* Images mixed with others of their shard; in evaluation as they are. */
cvy_value cvy_mix_images(struct cvy_graph *g, cvy_value images, const struct cvy_mixing *what);
/* cvy_cross_entropy, of labels that are mixed as the images were. Ranks and hits are those of their own labels. */
cvy_value cvy_mixed_cross_entropy(struct cvy_graph *g, cvy_value logits, cvy_value labels,
                                  double label_smoothing, const struct cvy_mixing *what);

#endif

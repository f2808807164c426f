/* What the model files need beyond the public layer functions: other initial distributions than torch.nn's,
   and names in torchvision's manner. */
#ifndef CVY_MODELS_LAYERS_H
#define CVY_MODELS_LAYERS_H

#include "graph/graph.h"

/* cvy_conv2d and cvy_linear with other distributions of the initial values; NULL: torch.nn's. */
cvy_value cvy_conv2d_init(struct cvy_graph *g, cvy_value x, const cvy_conv2d_args *args,
                          const struct cvy_init *weight_init, const struct cvy_init *bias_init);
cvy_value cvy_linear_init(struct cvy_graph *g, cvy_value x, const cvy_linear_args *args,
                          const struct cvy_init *weight_init, const struct cvy_init *bias_init);

/* Adds the parameter LAYER.FIELD. */
cvy_value cvy_layer_parameter(struct cvy_graph *g, const char *layer, const char *field,
                              struct cvy_shape shape, struct cvy_init init);

/* Zero for all of an image with probability p, else x / (1 - p); in evaluation x. p = 0: x itself. */
cvy_value cvy_stochastic_depth(struct cvy_graph *g, cvy_value x, double p);

/* The values from the first one on are an auxiliary head, which ends in `logits`: the next loss of the graph gets
   `weight` times theirs, and files of weights may lack its parameters. */
void cvy_auxiliary_head(struct cvy_graph *g, size_t first_value, cvy_value logits, double weight);

/* A name made as by printf, "layer1.0.conv1", that lives as long as the graph. NULL when there is no memory:
   then the graph has that error, and adds no more layers. */
const char *cvy_layer_name(struct cvy_graph *g, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* How a builder call ends: v; or CVY_NONE when `status` is an error, which the graph keeps if it is its first. */
cvy_value cvy_builder_result(struct cvy_graph *g, cvy_status status, cvy_value v);

#endif

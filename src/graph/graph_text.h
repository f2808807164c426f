/* Words that the printer and the parser of the text form share. Inner to src/graph and the program's text. */
#ifndef CVY_GRAPH_GRAPH_TEXT_H
#define CVY_GRAPH_GRAPH_TEXT_H

#include "graph/graph.h"

extern const char *const cvy_value_kind_names[CVY_VALUE_RESULT + 1];
extern const char *const cvy_init_names[CVY_N_INITS];
extern const char *const cvy_phase_names[CVY_PHASE_REFRESH + 1];
extern const char *const cvy_reduce_names[CVY_REDUCE_HITS + 1];

/* Whether the layer's name can be read off the first output's: updates are named after what they update, and
   some operators make nothing. */
bool cvy_layer_is_implied(const struct cvy_op *op, const char *layer, const char *first_output);
/* That name, in the pool: the first output's (NULL: there is none) without ".OUTNAME". */
cvy_status cvy_layer_imply(const struct cvy_op *op, const char *first_output, struct cvy_pool *pool,
                           const char **layer);

#endif

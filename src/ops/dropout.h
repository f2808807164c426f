/* Attributes of dropout and dropout_backward.
   Element i of the shard is element e = first_image * elements_per_image + i of the global batch; it is
   dropped when number e % 4 of the block that cvy_rng_at gives at position e / 4 is below p * 2^32, with the
   generator cvy_rng_init(seed, CVY_RNG_DROPOUT, step, id). {seed, step, first_image} is the input `rng`;
   the seed must be below 2^53. */
#ifndef CVY_OPS_DROPOUT_H
#define CVY_OPS_DROPOUT_H

#include <stdbool.h>
#include <stdint.h>

struct cvy_dropout_attrs {
    double p;
    int64_t id;    /* the node's id, told by whoever adds the node: keys the numbers */
    bool training; /* false: the identity; evaluation graphs set it as they do batch_norm's */
    bool
        per_image; /* stochastic depth: image n of the shard has number first_image + n, for all its elements */
};

#endif

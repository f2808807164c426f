/* Drawing initial values: stream CVY_RNG_INIT, keyed by the hash of the name. Numbers are made in double and rounded
   once, and in order, so that a longer tensor starts as a shorter one of the same name. */
#include "graph/init.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

/* Two at a time: both coordinates of the point that Box and Muller draw. */
static void fill_normal(struct cvy_rng *rng, double deviation, int64_t n, float *out) {
    for (int64_t i = 0; i < n; i += 2) {
        double u = (cvy_rng_u32(rng) + 1.0) * 0x1p-32; /* (0, 1]: its logarithm is finite */
        double angle = 6.283185307179586476925 * cvy_rng_uniform(rng), sine, cosine;
        double radius = deviation * sqrt(-2 * log(u));
        sincos(angle, &sine, &cosine);
        out[i] = (float)(radius * cosine);
        if (i + 1 < n)
            out[i + 1] = (float)(radius * sine);
    }
}

cvy_status cvy_init_fill(uint64_t seed, const char *name, const struct cvy_desc *desc,
                         const struct cvy_init *init, float *out) {
    if (desc->dtype != CVY_F32)
        return CVY_FAIL(CVY_ERR_USAGE, "%s: initial values are f32, not %s", name,
                        cvy_dtype_name(desc->dtype));
    int64_t n = cvy_shape_count(&desc->shape);
    struct cvy_rng rng;
    cvy_rng_init(&rng, seed, CVY_RNG_INIT, XXH64(name, strlen(name), 0), 0);
    switch (init->kind) {
    case CVY_INIT_ZERO:
    case CVY_INIT_ONE:
        for (int64_t i = 0; i < n; i++)
            out[i] = init->kind == CVY_INIT_ONE;
        break;
    case CVY_INIT_UNIFORM:
        for (int64_t i = 0; i < n; i++)
            out[i] = (float)(init->scale * (2 * cvy_rng_uniform(&rng) - 1));
        break;
    case CVY_INIT_NORMAL:
        fill_normal(&rng, init->scale, n, out);
        break;
    case CVY_INIT_CONSTANT:
        for (int64_t i = 0; i < n; i++)
            out[i] = (float)init->scale;
        break;
    }
    return CVY_OK;
}

/* Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as
   1, 2, 3", 2011). A number is a function of (seed, use, a, b, position) alone, so that no strategy,
   worker count or order of evaluation can change it. */
#ifndef CVY_BASE_RNG_H
#define CVY_BASE_RNG_H

#include <stdint.h>

/* What for: separate streams under one seed; never renumber. */
enum cvy_rng_use {
    CVY_RNG_INIT = 1,      /* a = xxh64 of the parameter's name, b = 0 */
    CVY_RNG_SHUFFLE = 2,   /* a = 0, b = epoch */
    CVY_RNG_AUGMENT = 3,   /* a = sample index, b = epoch */
    CVY_RNG_DROPOUT = 4,   /* a = step, b = operator id; position = element of the global batch / 4 */
    CVY_RNG_SYNTHETIC = 5, /* a = sample index, b = 0 */
    CVY_RNG_TEST = 6,
    CVY_RNG_MIX = 7, /* a = step, b = 0; see ops/mix.c */
};

void cvy_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

struct cvy_rng {
    uint32_t key[2];
    uint32_t b;
    uint64_t a;
    uint64_t position; /* the next block of four numbers */
    uint32_t block[4];
    int n_left; /* unused numbers in block */
};

/* counter = {position low, b, a low, a high ^ position high}; key = splitmix64(seed ^ use << 56). */
void cvy_rng_init(struct cvy_rng *rng, uint64_t seed, enum cvy_rng_use use, uint64_t a, uint32_t b);
uint32_t cvy_rng_u32(struct cvy_rng *rng);
uint32_t cvy_rng_below(struct cvy_rng *rng, uint32_t n); /* uniform in [0, n), no modulo bias; n >= 1 */
double cvy_rng_uniform(struct cvy_rng *rng);             /* [0, 1), 32 bits */
/* The same from low on, below high. */
static inline double cvy_rng_between(struct cvy_rng *rng, double low, double high) {
    return low + (high - low) * cvy_rng_uniform(rng);
}
double cvy_rng_normal(struct cvy_rng *rng); /* mean 0, deviation 1 (Box-Muller) */
/* The four numbers at `position`, without moving the generator: what dropout uses. */
void cvy_rng_at(const struct cvy_rng *rng, uint64_t position, uint32_t out[4]);

#endif

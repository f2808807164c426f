/* Philox 4x32-10 and the distributions over it. Invariant: `position` is the next block to be made, and
   block[4 - n_left .. 3] are the unused numbers of the one before. */
#include "base/rng.h"

#include <math.h>

/* Multipliers and key increments of the paper. */
enum { N_ROUNDS = 10 };
static const uint32_t MUL_0 = 0xD2511F53u, MUL_1 = 0xCD9E8D57u, BUMP_0 = 0x9E3779B9u, BUMP_1 = 0xBB67AE85u;

void cvy_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < N_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)MUL_0 * c0, p1 = (uint64_t)MUL_1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += BUMP_0;
        k1 += BUMP_1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

static uint64_t splitmix64(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

void cvy_rng_init(struct cvy_rng *rng, uint64_t seed, enum cvy_rng_use use, uint64_t a, uint32_t b) {
    uint64_t key = splitmix64(seed ^ (uint64_t)use << 56);
    *rng = (struct cvy_rng){.key = {(uint32_t)key, (uint32_t)(key >> 32)}, .a = a, .b = b};
}

void cvy_rng_at(const struct cvy_rng *rng, uint64_t position, uint32_t out[4]) {
    const uint32_t counter[4] = {(uint32_t)position, rng->b, (uint32_t)rng->a,
                                 (uint32_t)(rng->a >> 32) ^ (uint32_t)(position >> 32)};
    cvy_philox(rng->key, counter, out);
}

uint32_t cvy_rng_u32(struct cvy_rng *rng) {
    if (rng->n_left == 0) {
        cvy_rng_at(rng, rng->position++, rng->block);
        rng->n_left = 4;
    }
    return rng->block[4 - rng->n_left--];
}

/* The high half of x * n is uniform once the 2^32 mod n lowest low halves are refused (Lemire 2019). */
uint32_t cvy_rng_below(struct cvy_rng *rng, uint32_t n) {
    uint32_t n_refused = (uint32_t)-n % n;
    uint64_t product;
    do {
        product = (uint64_t)cvy_rng_u32(rng) * n;
    } while ((uint32_t)product < n_refused);
    return (uint32_t)(product >> 32);
}

double cvy_rng_uniform(struct cvy_rng *rng) { return cvy_rng_u32(rng) * 0x1p-32; }

double cvy_rng_normal(struct cvy_rng *rng) {
    double u = (cvy_rng_u32(rng) + 1.0) * 0x1p-32; /* (0, 1]: its logarithm is finite */
    double angle = 6.283185307179586476925 * cvy_rng_uniform(rng);
    return sqrt(-2.0 * log(u)) * cos(angle);
}

/* Philox 4x32-10 for 16 positions at once: the numbers of base/rng.h, by lanes. */
#ifndef CVY_CPU_PHILOX_H
#define CVY_CPU_PHILOX_H

#include "backends/cpu/vector.h"
#include "base/rng.h"

enum { CPU_PHILOX_NUMBERS = 4 * CPU_LANES };

/* What cvy_rng_at gives at position, position + 1, …, position + 15, one after the other. The loop over lanes is the
   outer one, and its counters are four variables: so compilers make vectors of it. */
CPU_INLINE void cpu_philox(const struct cvy_rng *rng, uint64_t position, uint32_t out[CPU_PHILOX_NUMBERS]) {
    const uint32_t key0 = rng->key[0], key1 = rng->key[1], b = rng->b, a_low = (uint32_t)rng->a,
                   a_high = (uint32_t)(rng->a >> 32);
    CPU_EACH_LANE(l) {
        uint64_t at = position + (uint64_t)l;
        uint32_t c0 = (uint32_t)at, c1 = b, c2 = a_low, c3 = a_high ^ (uint32_t)(at >> 32);
        for (uint32_t round = 0; round < 10; round++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
            c0 = (uint32_t)(p1 >> 32) ^ c1 ^ (key0 + round * 0x9E3779B9u);
            c2 = (uint32_t)(p0 >> 32) ^ c3 ^ (key1 + round * 0xBB67AE85u);
            c1 = (uint32_t)p1;
            c3 = (uint32_t)p0;
        }
        out[4 * l] = c0;
        out[4 * l + 1] = c1;
        out[4 * l + 2] = c2;
        out[4 * l + 3] = c3;
    }
}

#endif

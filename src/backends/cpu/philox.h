/* Philox 4x32-10 for 16 positions at once: the numbers of base/rng.h, by lanes. */
#ifndef CVY_CPU_PHILOX_H
#define CVY_CPU_PHILOX_H

#include "backends/cpu/vector.h"
#include "base/rng.h"

enum { CPU_PHILOX_NUMBERS = 4 * CPU_LANES };

/* What cvy_rng_at gives at position, position + 1, …, position + 15, one after the other. */
CPU_INLINE void cpu_philox(const struct cvy_rng *rng, uint64_t position, uint32_t out[CPU_PHILOX_NUMBERS]) {
    uint32_t c0[CPU_LANES], c1[CPU_LANES], c2[CPU_LANES], c3[CPU_LANES], k0 = rng->key[0], k1 = rng->key[1];
    CPU_EACH_LANE(l) {
        uint64_t at = position + (uint64_t)l;
        c0[l] = (uint32_t)at;
        c1[l] = rng->b;
        c2[l] = (uint32_t)rng->a;
        c3[l] = (uint32_t)(rng->a >> 32) ^ (uint32_t)(at >> 32);
    }
    for (int round = 0; round < 10; round++) {
        CPU_EACH_LANE(l) {
            uint64_t p0 = (uint64_t)0xD2511F53u * c0[l], p1 = (uint64_t)0xCD9E8D57u * c2[l];
            c0[l] = (uint32_t)(p1 >> 32) ^ c1[l] ^ k0;
            c2[l] = (uint32_t)(p0 >> 32) ^ c3[l] ^ k1;
            c1[l] = (uint32_t)p1;
            c3[l] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    CPU_EACH_LANE(l) {
        out[4 * l] = c0[l];
        out[4 * l + 1] = c1[l];
        out[4 * l + 2] = c2[l];
        out[4 * l + 3] = c3[l];
    }
}

#endif

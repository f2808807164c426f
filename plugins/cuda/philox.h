/* Numbers of base/rng.h: Philox 4x32-10, four at each position. */
#ifndef CONVOY_CUDA_PHILOX_H
#define CONVOY_CUDA_PHILOX_H

#include "functions.h"

/* key: seed ^ use << 56; a and b as in cvy_rng_init. */
CUDA_BODY void cuda_philox(uint64_t key, uint64_t a, uint32_t b, uint64_t position, uint32_t number[4]) {
    key += 0x9E3779B97F4A7C15u; /* splitmix64 */
    key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9u;
    key = (key ^ key >> 27) * 0x94D049BB133111EBu;
    key ^= key >> 31;
    uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
    number[0] = (uint32_t)position;
    number[1] = b;
    number[2] = (uint32_t)a;
    number[3] = (uint32_t)(a >> 32) ^ (uint32_t)(position >> 32);
    for (uint32_t round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * number[0], p1 = (uint64_t)0xCD9E8D57u * number[2];
        number[0] = (uint32_t)(p1 >> 32) ^ number[1] ^ (key0 + round * 0x9E3779B9u);
        number[2] = (uint32_t)(p0 >> 32) ^ number[3] ^ (key1 + round * 0xBB67AE85u);
        number[1] = (uint32_t)p1;
        number[3] = (uint32_t)p0;
    }
}

#endif

/* Numbers as most formats of files have them: the highest byte first. */
#ifndef CVY_DATA_BIG_ENDIAN_H
#define CVY_DATA_BIG_ENDIAN_H

#include <stdint.h>

/* Of n bytes, at most 4. */
static inline uint32_t cvy_big_endian(const uint8_t *bytes, int n) {
    uint32_t value = 0;
    for (int k = 0; k < n; k++)
        value = value << 8 | bytes[k];
    return value;
}

#endif

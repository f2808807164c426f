/* Vectors of 16 floats, in the compilers' own notation: one text for every instruction set, and the order of every
   sum is the one that is written. */
#ifndef CVY_CPU_VECTOR_H
#define CVY_CPU_VECTOR_H

#include "backends/cpu/cpu.h"

#include <math.h>
#include <string.h>

enum { CPU_LANES = 16 };
typedef float cpu_v16 __attribute__((vector_size(64)));
typedef int32_t cpu_v16i __attribute__((vector_size(64)));
typedef uint8_t cpu_v16u8 __attribute__((vector_size(16)));

/* `width` as the compiler may trust it: at most 16. */
CPU_INLINE size_t cpu_width(int width) { return (size_t)(width < CPU_LANES ? width : CPU_LANES); }

/* The first `width` lanes; the others are 0. With a constant width of 16 these are single instructions. */
CPU_INLINE void cpu_load(cpu_v16 *to, const float *from, int width) {
    if (width < CPU_LANES)
        *to = (cpu_v16){0};
    memcpy(to, from, cpu_width(width) * sizeof *from);
}

CPU_INLINE void cpu_store(float *to, const cpu_v16 *from, int width) {
    memcpy(to, from, cpu_width(width) * sizeof *to);
}

/* Bytes to integers, the other lanes 0. A loop: gcc takes a vector conversion of bytes apart, lane by lane. */
CPU_INLINE void cpu_load_bytes(cpu_v16i *to, const uint8_t *from, int width) {
    int32_t wide[CPU_LANES] = {0};
    for (size_t l = 0; l < cpu_width(width); l++)
        wide[l] = from[l];
    memcpy(to, wide, sizeof wide);
}

/* Lane by lane; a loop becomes one instruction. */
CPU_INLINE void cpu_sqrt(cpu_v16 *v) {
    float a[CPU_LANES];
    memcpy(a, v, sizeof a);
    for (int l = 0; l < CPU_LANES; l++)
        a[l] = sqrtf(a[l]);
    memcpy(v, a, sizeof a);
}

/* Sum of the lanes, in a fixed tree. */
CPU_INLINE float cpu_fold(const cpu_v16 *v) {
    float a[CPU_LANES];
    memcpy(a, v, sizeof a);
    for (int half = CPU_LANES / 2; half > 0; half /= 2) {
        for (int l = 0; l < half; l++)
            a[l] += a[l + half];
    }
    return a[0];
}

/* Where the condition's lanes are set: v, else 0. */
#define CPU_WHERE(condition, v) ((cpu_v16)((cpu_v16i)(v) & (condition)))

#endif

/* The type of activations and their gradients. Files whose kernels take more than float32 (CVY_CPU_REAL in CMake) are
   compiled once for each type: `cpu_real` is its element, CPU_REAL(name) the name that an external symbol has then.
   bfloat16 is loaded into float lanes, and rounded to the nearest, ties to even, where it is stored; what is not of
   activations stays `float`. A struct, so that no compiler takes the one for the other. */
#ifndef CVY_CPU_REAL_H
#define CVY_CPU_REAL_H

#include <stdint.h>
#include <string.h>

typedef struct {
    uint16_t bits; /* the upper half of a float */
} cpu_bf16;

#ifdef CVY_CPU_BF16
typedef cpu_bf16 cpu_real;
#define CPU_REAL(name) name##_bf16
#define CPU_SUPPORTS_REAL cpu_supports_bf16
#else
typedef float cpu_real;
#define CPU_REAL(name) name
#define CPU_SUPPORTS_REAL cpu_supports_f32
#endif

#define CPU_REAL_INLINE static inline __attribute__((always_inline, unused))

CPU_REAL_INLINE float cpu_bf16_widen(cpu_bf16 x) {
    uint32_t bits = (uint32_t)x.bits << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

/* NaN stays NaN: its first mantissa bit is set, that rounding should not make it infinite. */
CPU_REAL_INLINE cpu_bf16 cpu_bf16_narrow(float x) {
    uint32_t bits, is_nan;
    memcpy(&bits, &x, sizeof bits);
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
    return (cpu_bf16){(uint16_t)(is_nan ? bits >> 16 | 0x40 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

/* max(x, 0), where NaN stays NaN */
CPU_REAL_INLINE cpu_bf16 cpu_bf16_relu(cpu_bf16 x) {
    return (cpu_bf16){(uint16_t)(x.bits - 0x8000) <= 0x7F80 ? 0 : x.bits}; /* -0 to -infinity */
}
CPU_REAL_INLINE float cpu_f32_relu(float x) { return x <= 0 ? 0 : x; }

CPU_REAL_INLINE uint8_t cpu_bf16_is_positive(cpu_bf16 x) { return (uint16_t)(x.bits - 1) < 0x7F80; }
CPU_REAL_INLINE uint8_t cpu_f32_is_positive(float x) { return x > 0; }

#ifdef CVY_CPU_BF16
CPU_REAL_INLINE float cpu_widen(cpu_real x) { return cpu_bf16_widen(x); }
CPU_REAL_INLINE cpu_real cpu_narrow(float x) { return cpu_bf16_narrow(x); }
#define cpu_real_relu cpu_bf16_relu
#define cpu_real_is_positive cpu_bf16_is_positive
#else
CPU_REAL_INLINE float cpu_widen(cpu_real x) { return x; }
CPU_REAL_INLINE cpu_real cpu_narrow(float x) { return x; }
#define cpu_real_relu cpu_f32_relu
#define cpu_real_is_positive cpu_f32_is_positive
#endif

#endif

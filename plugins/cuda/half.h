/* Numbers of 16 bits, on both sides: to and from float, to the nearest, ties to even; NaN stays NaN. */
#ifndef CONVOY_CUDA_HALF_H
#define CONVOY_CUDA_HALF_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#include <cuda_fp16.h>
#define CUDA_BODY static __device__ inline
#else
#define CUDA_BODY static inline
#endif

enum cuda_type { CUDA_F32, CUDA_BF16, CUDA_F16 }; /* of floating-point operands */

CUDA_BODY uint32_t cuda_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

CUDA_BODY float cuda_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

CUDA_BODY float cuda_of_bf16(uint16_t half) { return cuda_of_bits((uint32_t)half << 16); }

CUDA_BODY uint16_t cuda_to_bf16(float value) {
    uint32_t bits = cuda_bits(value);
    if ((bits & 0x7FFFFFFF) > 0x7F800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

#ifdef __CUDA_ARCH__
CUDA_BODY float cuda_of_f16(uint16_t half) { return __half2float(__ushort_as_half(half)); }
CUDA_BODY uint16_t cuda_to_f16(float value) { return __half_as_ushort(__float2half_rn(value)); }
#else
/* Exponents differ by 112; multiplied by 2^112, subnormal numbers come out right too. */
CUDA_BODY float cuda_of_f16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7FFF;
    if (magnitude >= 0x7C00) /* infinity, NaN */
        return cuda_of_bits(sign | 0x7F800000 | magnitude << 13);
    return cuda_of_bits(sign | cuda_bits(cuda_of_bits(magnitude << 13) * 0x1p112f));
}

CUDA_BODY uint16_t cuda_to_f16(float value) {
    uint32_t bits = cuda_bits(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
    if (magnitude > 0x7F800000)
        return (uint16_t)(sign | 0x7E00);
    if (magnitude >= 0x477FF000) /* 65520: the tie with what would be 2^16 */
        return (uint16_t)(sign | 0x7C00);
    if (magnitude <
        0x38800000) /* below 2^-14: 0.5 has the unit 2^-24 of subnormal numbers, so the addition rounds */
        return (uint16_t)(sign | (cuda_bits(cuda_of_bits(magnitude) + 0.5f) - cuda_bits(0.5f)));
    return (uint16_t)(sign | ((magnitude + 0xFFF + (magnitude >> 13 & 1) - (112u << 23)) >> 13));
}
#endif

/* By type, CUDA_BF16 or CUDA_F16. */
CUDA_BODY float cuda_widen(uint8_t type, uint16_t half) {
    return type == CUDA_BF16 ? cuda_of_bf16(half) : cuda_of_f16(half);
}

CUDA_BODY uint16_t cuda_narrow(uint8_t type, float value) {
    return type == CUDA_BF16 ? cuda_to_bf16(value) : cuda_to_f16(value);
}

#endif

/* Vectors of 16 floats, in the compilers' own notation: one text for every instruction set, and the order of every
   sum is the one that is written. */
#ifndef CVY_CPU_VECTOR_H
#define CVY_CPU_VECTOR_H

#include "backends/cpu/cpu.h"
#include "backends/cpu/real.h"

#include <math.h>
#include <string.h>
#ifdef CVY_CPU_BF16 /* compiled for AVX-512: where the compilers' notation falls short, its own */
#include <immintrin.h>
#endif

enum { CPU_LANES = 16 };
typedef float cpu_v16 __attribute__((vector_size(64)));
typedef int32_t cpu_v16i __attribute__((vector_size(64)));
typedef uint32_t cpu_v16u __attribute__((vector_size(64)));
typedef uint16_t cpu_v16h __attribute__((vector_size(32)));

/* `width` as the compiler may trust it: at most 16. */
CPU_INLINE size_t cpu_width(int width) { return (size_t)(width < CPU_LANES ? width : CPU_LANES); }

CPU_INLINE void cpu_load_f32(cpu_v16 *to, const float *from, int width) {
    if (width < CPU_LANES)
        *to = (cpu_v16){0};
    memcpy(to, from, cpu_width(width) * sizeof *from);
}

CPU_INLINE void cpu_store_f32(float *to, const cpu_v16 *from, int width) {
    memcpy(to, from, cpu_width(width) * sizeof *to);
}

CPU_INLINE void cpu_load_bf16(cpu_v16 *to, const cpu_bf16 *from, int width) {
    cpu_v16h half = {0};
    memcpy(&half, from, cpu_width(width) * sizeof *from);
    *to = (cpu_v16)(__builtin_convertvector(half, cpu_v16u) << 16);
}

/* As cpu_bf16_narrow. (VCVTNEPS2BF16 would take small numbers for 0.) */
CPU_INLINE void cpu_store_bf16(cpu_bf16 *to, const cpu_v16 *from, int width) {
    cpu_v16u bits = (cpu_v16u)*from, is_nan = (cpu_v16u)(*from != *from);
    cpu_v16u rounded = bits + 0x7FFF + (bits >> 16 & 1), quiet = bits | 0x400000;
    cpu_v16h half = __builtin_convertvector(((rounded & ~is_nan) | (quiet & is_nan)) >> 16, cpu_v16h);
    memcpy(to, &half, cpu_width(width) * sizeof *to);
}

/* The first `width` lanes; the others are 0. With a constant width of 16 these are a few instructions. */
#define cpu_load(to, from, width) \
    _Generic((from), float *               \
             : cpu_load_f32, const float * \
             : cpu_load_f32, cpu_bf16 *    \
             : cpu_load_bf16, const cpu_bf16 * \
             : cpu_load_bf16)(to, from, width)
#define cpu_store(to, from, width) \
    _Generic((to), float * : cpu_store_f32, cpu_bf16 * : cpu_store_bf16)(to, from, width)

/* ---- lane by lane ----------------------------------------------------------------------------------
   What compares or converts is a loop over lanes: gcc 12 makes vectors of these on every instruction set, while it
   takes comparisons of whole vectors apart where the processor's are shorter. */

#define CPU_EACH_LANE(l) for (int l = 0; l < CPU_LANES; l++)

/* All bits of the lanes that are NaN. By whole numbers, as what follows: no lane leaves its register. */
CPU_INLINE void cpu_nan_lanes(cpu_v16i *to, const cpu_v16 *v) {
    *to = (0x7F800000 - ((cpu_v16i)*v & 0x7FFFFFFF)) >> 31;
}

/* max(v, 0); NaN stays NaN */
CPU_INLINE void cpu_relu(cpu_v16 *v) {
    cpu_v16i bits = (cpu_v16i)*v, is_nan;
    cpu_nan_lanes(&is_nan, v);
    *v = (cpu_v16)(bits & (~(bits >> 31) | is_nan));
}

/* v where y > 0, else 0 */
CPU_INLINE void cpu_where_positive(cpu_v16 *v, const cpu_v16 *y) {
    float a[CPU_LANES], b[CPU_LANES];
    memcpy(a, v, sizeof a);
    memcpy(b, y, sizeof b);
    CPU_EACH_LANE(l) a[l] = b[l] > 0 ? a[l] : 0;
    memcpy(v, a, sizeof a);
}

/* v where the mask is 1, 0 where it is 0: bits ANDed with 0 - mask */
CPU_INLINE void cpu_where_mask(cpu_v16 *v, const uint8_t *mask, int width) {
    int32_t wide[CPU_LANES] = {0};
    cpu_v16i bits;
    for (size_t l = 0; l < cpu_width(width); l++)
        wide[l] = mask[l];
    memcpy(&bits, wide, sizeof wide);
    *v = (cpu_v16)((cpu_v16i)*v & -bits);
}

/* an int, so that loops combine it without branches */
CPU_INLINE int cpu_is_nan(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7FFFFFFF) > 0x7F800000;
}

/* best = v, best_at = at, where v is larger, or is the first NaN */
CPU_INLINE void cpu_take_larger(cpu_v16 *best, cpu_v16i *best_at, const cpu_v16 *v, int32_t at) {
    float a[CPU_LANES], b[CPU_LANES];
    int32_t wins[CPU_LANES]; /* all bits or none */
    cpu_v16i take;
    memcpy(a, best, sizeof a);
    memcpy(b, v, sizeof b);
    CPU_EACH_LANE(l) wins[l] = -((b[l] > a[l]) | (cpu_is_nan(b[l]) & (1 - cpu_is_nan(a[l]))));
    memcpy(&take, wins, sizeof take);
    *best = (cpu_v16)(((cpu_v16i)*v & take) | ((cpu_v16i)*best & ~take));
    *best_at = (((cpu_v16i){0} + at) & take) | (*best_at & ~take);
}

CPU_INLINE void cpu_sqrt(cpu_v16 *v) {
    float a[CPU_LANES];
    memcpy(a, v, sizeof a);
    CPU_EACH_LANE(l) a[l] = sqrtf(a[l]);
    memcpy(v, a, sizeof a);
}

/* exp(v) where v <= 0 or NaN, to 2 units in the last place: 2^n exp(r), n = v / ln 2 rounded, r = v - n ln 2, exp(r) by
   its Taylor series to r^7. Below -87, near the smallest normal number, it is 0. */
CPU_INLINE void cpu_exp(cpu_v16 *v) {
    const float log2_e = 0x1.715476p+0f, ln_2_high = 0x1.62ep-1f, ln_2_low = 0x1.0bfbe8p-15f;
    const float magic = 0x1.8p23f; /* its unit in the last place is 1: adding it rounds to a whole number */
    const float c[] = {1.f / 5040, 1.f / 720, 1.f / 120, 1.f / 24, 1.f / 6, 0.5f, 1, 1};
    cpu_v16 shifted = *v * log2_e + magic, n = shifted - magic, r = *v - n * ln_2_high - n * ln_2_low;
    cpu_v16 result = (cpu_v16){0} + c[0];
    for (size_t k = 1; k < sizeof c / sizeof *c; k++)
        result = result * r + c[k];
    result *= (cpu_v16)(((cpu_v16u)shifted + 127) << 23); /* 2^n: n + 127 becomes the exponent */
    float a[CPU_LANES], b[CPU_LANES];
    memcpy(a, v, sizeof a);
    memcpy(b, &result, sizeof b);
    CPU_EACH_LANE(l) b[l] = a[l] < -87 ? 0 : b[l];
    memcpy(v, b, sizeof b);
}

/* 0 in the lanes from `width` on */
CPU_INLINE void cpu_trim(cpu_v16 *v, int width) {
    float a[CPU_LANES];
    memcpy(a, v, sizeof a);
    CPU_EACH_LANE(l) a[l] = l < width ? a[l] : 0;
    memcpy(v, a, sizeof a);
}

/* ---- whole vectors of elements that are all there ---------------------------------------------------
   The same results as above, by AVX-512's own comparisons into bits, which gcc 12 does not find. */

#ifdef CVY_CPU_BF16
CPU_INLINE void cpu_store_whole(cpu_real *to, const cpu_v16 *from) {
    __m512 v = (__m512)*from;
    __m512i bits = _mm512_castps_si512(v);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, is_nan, bits, _mm512_set1_epi32(0x400000));
    _mm256_storeu_si256((void *)to, _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
}

CPU_INLINE void cpu_relu_whole(cpu_v16 *v, uint8_t *mask) {
    __m512 y = (__m512)*v, zero = _mm512_setzero_ps();
    __mmask16 is_positive = _mm512_cmp_ps_mask(y, zero, _CMP_GT_OQ);
    if (mask)
        _mm_storeu_si128((void *)mask, _mm_maskz_set1_epi8(is_positive, 1));
    *v = (cpu_v16)_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(y, zero, _CMP_NLE_UQ), y);
}

CPU_INLINE void cpu_where_mask_whole(cpu_v16 *v, const uint8_t *mask) {
    __m128i bytes = _mm_loadu_si128((const void *)mask);
    *v = (cpu_v16)_mm512_maskz_mov_ps(_mm_test_epi8_mask(bytes, bytes), (__m512)*v);
}
#else
CPU_INLINE void cpu_store_whole(cpu_real *to, const cpu_v16 *from) { cpu_store(to, from, CPU_LANES); }

/* The relu, and, unless NULL, its mask: 1 where v > 0. Two lanes become the lower bytes of one of 64 bits, which are
   then narrowed together: gcc 12 narrows 32 bits to 8 one by one. */
CPU_INLINE void cpu_relu_whole(cpu_v16 *v, uint8_t *mask) {
    typedef uint64_t v8q __attribute__((vector_size(64)));
    typedef uint16_t v8h __attribute__((vector_size(16)));
    cpu_v16i is_nan;
    cpu_nan_lanes(&is_nan, v);
    cpu_relu(v);
    if (mask) {
        v8q pairs =
            (v8q)((cpu_v16u)(-(cpu_v16i)*v & ~is_nan) >> 31); /* a positive number's negative has a sign */
        v8h bytes = __builtin_convertvector(pairs | pairs >> 24, v8h);
        memcpy(mask, &bytes, sizeof bytes);
    }
}

/* Four lanes get the same four bytes of the mask, and each spreads the lowest bit of its own. */
CPU_INLINE void cpu_where_mask_whole(cpu_v16 *v, const uint8_t *mask) {
    typedef int32_t v4i __attribute__((vector_size(16)));
    typedef int32_t v8i __attribute__((vector_size(32)));
    const cpu_v16i shift = {31, 23, 15, 7, 31, 23, 15, 7, 31, 23, 15, 7, 31, 23, 15, 7};
    v4i bytes;
    memcpy(&bytes, mask, sizeof bytes);
    v8i twice =
        __builtin_shufflevector(bytes, bytes, 0, 1, 2, 3, 0, 1, 2, 3); /* wider step by step, in registers */
    cpu_v16i keep =
        __builtin_shufflevector(twice, twice, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    keep = __builtin_shufflevector(keep, keep, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    *v = (cpu_v16)((cpu_v16i)*v & keep << shift >> 31);
}
#endif

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

/* Sums in double precision, one per lane, and the sum of these in a fixed tree. */
CPU_INLINE void cpu_add_lanes(double sums[CPU_LANES], const cpu_v16 *v) {
    float a[CPU_LANES];
    memcpy(a, v, sizeof a);
    CPU_EACH_LANE(l) sums[l] += (double)a[l];
}

CPU_INLINE double cpu_fold_lanes(const double sums[CPU_LANES]) {
    double a[CPU_LANES];
    memcpy(a, sums, sizeof a);
    for (int half = CPU_LANES / 2; half > 0; half /= 2) {
        for (int l = 0; l < half; l++)
            a[l] += a[l + half];
    }
    return a[0];
}

#endif

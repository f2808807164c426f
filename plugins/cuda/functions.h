/* What the bodies of functions are written with: they are compiled by nvcc for the device, and as C for the host. */
#ifndef CONVOY_CUDA_FUNCTIONS_H
#define CONVOY_CUDA_FUNCTIONS_H

#include "half.h"

#include <math.h>

enum { CUDA_ARGS_IN = 8, CUDA_ARGS_OUT = 4, CUDA_ARGS_DIMS = 20, CUDA_ARGS_NUMBERS = 8, CUDA_FOLD_SUMS = 2 };

struct cuda_args { /* passed by value: as plain as can be */
    const void *in[CUDA_ARGS_IN];
    void *out[CUDA_ARGS_OUT];
    uint8_t in_type[CUDA_ARGS_IN], out_type[CUDA_ARGS_OUT]; /* enum cuda_type */
    int64_t dim[CUDA_ARGS_DIMS];
    float number[CUDA_ARGS_NUMBERS];
};

/* Tensors that are updated by the same launch: what changes from one to the next. */
enum { CUDA_SEGMENTS = 24, CUDA_SEGMENT_IN = 4, CUDA_SEGMENT_OUT = 3 };

struct cuda_segment {
    const void *in[CUDA_SEGMENT_IN]; /* the arguments' in[1], in[2], … */
    void *out[CUDA_SEGMENT_OUT];     /* out[0], … */
    int64_t n;
};

struct cuda_segments {
    int n;
    struct cuda_segment at[CUDA_SEGMENTS];
};

/* The arguments for one segment. */
CUDA_BODY struct cuda_args cuda_args_of(const struct cuda_args *all, const struct cuda_segment *segment) {
    struct cuda_args a = *all;
    for (int k = 0; k < CUDA_SEGMENT_IN; k++)
        a.in[1 + k] = segment->in[k];
    for (int k = 0; k < CUDA_SEGMENT_OUT; k++)
        a.out[k] = segment->out[k];
    return a;
}

/* Element i of input k, whatever its type; of output k. */
CUDA_BODY float cuda_load(const struct cuda_args *a, int k, int64_t i) {
    return a->in_type[k] == CUDA_F32 ? ((const float *)a->in[k])[i]
                                     : cuda_widen(a->in_type[k], ((const uint16_t *)a->in[k])[i]);
}

CUDA_BODY void cuda_store(const struct cuda_args *a, int k, int64_t i, float value) {
    if (a->out_type[k] == CUDA_F32)
        ((float *)a->out[k])[i] = value;
    else
        ((uint16_t *)a->out[k])[i] = cuda_narrow(a->out_type[k], value);
}

/* ---- four elements at once ---------------------------------------------------------------------------------- */

enum { CUDA_QUAD = 4 };

/* What is loaded and stored by one instruction. Operands are aligned to 64 bytes, and i is a multiple of four. */
struct __attribute__((aligned(16))) cuda_quad_f32 {
    float at[CUDA_QUAD];
};
struct __attribute__((aligned(8))) cuda_quad_half {
    uint16_t at[CUDA_QUAD];
};
struct __attribute__((aligned(4))) cuda_quad_u8 {
    uint8_t at[CUDA_QUAD];
};

/* Elements i … i + n - 1 of input k, n at most four; the others are 0. */
CUDA_BODY struct cuda_quad_f32 cuda_load_quad(const struct cuda_args *a, int k, int64_t i, int n) {
    struct cuda_quad_f32 quad = {{0, 0, 0, 0}};
    if (n < CUDA_QUAD) {
        for (int j = 0; j < CUDA_QUAD; j++)
            quad.at[j] = j < n ? cuda_load(a, k, i + j) : 0;
    } else if (a->in_type[k] == CUDA_F32) {
        quad = *(const struct cuda_quad_f32 *)((const float *)a->in[k] + i);
    } else {
        struct cuda_quad_half narrow = *(const struct cuda_quad_half *)((const uint16_t *)a->in[k] + i);
        for (int j = 0; j < CUDA_QUAD; j++)
            quad.at[j] = cuda_widen(a->in_type[k], narrow.at[j]);
    }
    return quad;
}

CUDA_BODY void cuda_store_quad(const struct cuda_args *a, int k, int64_t i, int n,
                               struct cuda_quad_f32 quad) {
    if (n < CUDA_QUAD) {
        for (int j = 0; j < CUDA_QUAD; j++) {
            if (j < n)
                cuda_store(a, k, i + j, quad.at[j]);
        }
    } else if (a->out_type[k] == CUDA_F32) {
        *(struct cuda_quad_f32 *)((float *)a->out[k] + i) = quad;
    } else {
        struct cuda_quad_half narrow;
        for (int j = 0; j < CUDA_QUAD; j++)
            narrow.at[j] = cuda_narrow(a->out_type[k], quad.at[j]);
        *(struct cuda_quad_half *)((uint16_t *)a->out[k] + i) = narrow;
    }
}

/* The same of a mask; one that is absent is 1 everywhere. */
CUDA_BODY struct cuda_quad_u8 cuda_load_mask(const struct cuda_args *a, int k, int64_t i, int n) {
    struct cuda_quad_u8 quad = {{1, 1, 1, 1}};
    const uint8_t *mask = (const uint8_t *)a->in[k];
    if (mask && n == CUDA_QUAD)
        return *(const struct cuda_quad_u8 *)(mask + i);
    for (int j = 0; j < CUDA_QUAD; j++)
        quad.at[j] = mask && j < n ? mask[i + j] : 1;
    return quad;
}

CUDA_BODY void cuda_store_mask(const struct cuda_args *a, int k, int64_t i, int n, struct cuda_quad_u8 quad) {
    uint8_t *mask = (uint8_t *)a->out[k];
    if (n == CUDA_QUAD) {
        *(struct cuda_quad_u8 *)(mask + i) = quad;
        return;
    }
    for (int j = 0; j < CUDA_QUAD; j++) {
        if (j < n)
            mask[i + j] = quad.at[j];
    }
}

/* ---- channels ----------------------------------------------------------------------------------------------- */

/* For functions over channels: dim[0] channels, dim[1] elements that lie side by side for one of them (all pixels of an
   image, or 1 where the channels are innermost). */
struct cuda_channel { /* of an element: its channel, and how far it is in what lies side by side for it */
    int64_t c, at;
};

CUDA_BODY struct cuda_channel cuda_channel_of(const struct cuda_args *a, int64_t i) {
    int64_t inner = a->dim[1];
    struct cuda_channel first = {(inner == 1 ? i : i / inner) % a->dim[0], inner == 1 ? 0 : i % inner};
    return first;
}

/* Of the next element. */
CUDA_BODY struct cuda_channel cuda_channel_next(const struct cuda_args *a, struct cuda_channel here) {
    if (++here.at == a->dim[1]) {
        here.at = 0;
        here.c = here.c + 1 < a->dim[0] ? here.c + 1 : 0;
    }
    return here;
}

/* Where element k of channel c lies. */
CUDA_BODY int64_t cuda_of_channel(const struct cuda_args *a, int64_t c, int64_t k) {
    int64_t channels = a->dim[0], inner = a->dim[1];
    return inner == 1 ? k * channels + c : (k / inner * channels + c) * inner + k % inner;
}

CUDA_BODY const int64_t *cuda_integers(const struct cuda_args *a, int k) { return (const int64_t *)a->in[k]; }

/* ---- functions by rows ------------------------------------------------------------------------------------------ */

/* Who work on a row together: a warp or a block on the device, one on the host. Each takes elements lane, lane +
   size, …, and all come to every sum, in an order that the row's length fixes. */
struct cuda_team {
    int lane, size;
    double *shared; /* of a block: a place for each of its warps */
};

CUDA_BODY double cuda_team_sum(struct cuda_team team, double value) {
#if defined(__CUDA_ARCH__) || defined(CUDA_SIMT)
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, offset);
    if (team.shared) {
        if (team.lane % 32 == 0)
            team.shared[team.lane / 32] = value;
        __syncthreads();
        value = 0;
        for (int w = 0; w < team.size / 32; w++)
            value += team.shared[w];
        __syncthreads();
    }
#endif
    (void)team;
    return value;
}

/* Of a warp. */
CUDA_BODY float cuda_team_max(struct cuda_team team, float value) {
#if defined(__CUDA_ARCH__) || defined(CUDA_SIMT)
    for (int offset = 16; offset > 0; offset /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, offset));
#endif
    (void)team;
    return value;
}

#endif

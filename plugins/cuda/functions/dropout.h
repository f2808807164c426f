#include "philox.h"

/* Numbers of an operator at a position.
   in: …, {seed, step, first image of the shard} (i64); dim: …, id (3), CVY_RNG_DROPOUT (4) */
CUDA_BODY void dropout_numbers(const struct cuda_args *a, uint64_t position, uint32_t number[4]) {
    const int64_t *state = cuda_integers(a, 1);
    cuda_philox((uint64_t)state[0] ^ (uint64_t)a->dim[4] << 56, (uint64_t)state[1], (uint32_t)a->dim[3],
                position, number);
}

/* y = x scale where the element's number is not below the threshold, else 0; y may lie where x does. Element e of the
   global batch has number e % 4 at position e / 4. Index i stands for the i-th position that the shard has elements at.
   in: x, state; dim: elements, elements of an image, threshold (up to 2^32), id, CVY_RNG_DROPOUT; number: scale */
CUDA_BODY void dropout_map(const struct cuda_args *a, int64_t i) {
    uint64_t first = (uint64_t)cuda_integers(a, 1)[2] * (uint64_t)a->dim[1];
    uint64_t position = first / 4 + (uint64_t)i;
    uint32_t number[4];
    dropout_numbers(a, position, number);
    for (int l = 0; l < 4; l++) {
        int64_t at =
            (int64_t)(4 * position + (uint64_t)l - first); /* may be before the shard's first element */
        if (at >= 0 && at < a->dim[0])
            cuda_store(a, 0, at, (int64_t)number[l] < a->dim[2] ? 0 : cuda_load(a, 0, at) * a->number[0]);
    }
}

/* The same with one number for each image; i is an element. */
CUDA_BODY void dropout_image_map(const struct cuda_args *a, int64_t i) {
    uint64_t image = (uint64_t)cuda_integers(a, 1)[2] + (uint64_t)(i / a->dim[1]);
    uint32_t number[4];
    dropout_numbers(a, image / 4, number);
    cuda_store(a, 0, i, (int64_t)number[image % 4] < a->dim[2] ? 0 : cuda_load(a, 0, i) * a->number[0]);
}

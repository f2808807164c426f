/* dropout and its gradient, which are the same: y = mask x / (1 - p), the mask drawn anew from the element's position
   in the global batch (ops/dropout.h). 64 elements at a time, the numbers of 16 positions. */
#include "ops/dropout.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/philox.h"
#include "backends/cpu/rows.h"

struct keep {
    uint32_t threshold; /* a number from here on keeps its element */
    float scale;
};

/* y = x scale where the number keeps it, else 0; y may be x */
CPU_INLINE void drop_vector(const struct keep *keep, const uint32_t *numbers, const cpu_real *x, cpu_real *y,
                            const int width) {
    cpu_v16 v;
    int32_t is_kept[CPU_LANES]; /* all bits or none */
    cpu_v16i mask;
    CPU_EACH_LANE(l) is_kept[l] = -(numbers[l] >= keep->threshold);
    memcpy(&mask, is_kept, sizeof mask);
    cpu_load(&v, x, width);
    v *= keep->scale;
    v = (cpu_v16)((cpu_v16i)v & mask);
    cpu_store(y, &v, width);
}

/* Elements first .. end - 1 of the shard; element 0 is element `base` of the global batch. */
CPU_VECTOR static void drop_span(const struct keep *keep, const struct cvy_rng *rng, uint64_t base,
                                 const cpu_real *x, cpu_real *y, int64_t first, int64_t end) {
    uint32_t numbers[CPU_PHILOX_NUMBERS + CPU_LANES] = {0}; /* vectors may look past the end */
    struct keep here = *keep; /* the compiler knows that no store changes this copy */
    for (int64_t i = first; i < end;) {
        uint64_t element = base + (uint64_t)i;
        int skip = (int)(element % 4); /* only at first: then positions are whole */
        int n = end - i < CPU_PHILOX_NUMBERS - skip ? (int)(end - i) : CPU_PHILOX_NUMBERS - skip, k = 0;
        cpu_philox(rng, element / 4, numbers);
        for (; k + CPU_LANES <= n; k += CPU_LANES)
            drop_vector(&here, numbers + skip + k, x + i + k, y + i + k, CPU_LANES);
        if (k < n)
            drop_vector(&here, numbers + skip + k, x + i + k, y + i + k, n - k);
        i += n;
    }
}

/* The same with one number for each image; image 0 is image `base` of the global batch, of `each` elements. */
CPU_VECTOR static void drop_images(const struct keep *keep, const struct cvy_rng *rng, uint64_t base,
                                   int64_t each, const cpu_real *x, cpu_real *y, const int64_t span[2]) {
    struct keep here = *keep;
    for (int64_t i = span[0], next; i < span[1]; i = next) {
        uint64_t image = base + (uint64_t)(i / each);
        uint32_t block[4], numbers[CPU_LANES];
        next = (i / each + 1) * each < span[1] ? (i / each + 1) * each : span[1];
        cvy_rng_at(rng, image / 4, block);
        CPU_EACH_LANE(l) numbers[l] = block[image % 4];
        int64_t k = i;
        for (; k + CPU_LANES <= next; k += CPU_LANES)
            drop_vector(&here, numbers, x + k, y + k, CPU_LANES);
        if (k < next)
            drop_vector(&here, numbers, x + k, y + k, (int)(next - k));
    }
}

static void dropout_elements(const struct cpu_rows *me, int64_t first, int64_t end) {
    const struct cvy_dropout_attrs *a = me->attrs;
    const int64_t *key = me->in[1]; /* seed, step, first image of the shard */
    const cpu_real *x = me->in[0];
    cpu_real *y = me->out[0];
    size_t n_bytes = (size_t)(end - first) * sizeof *y;
    double threshold = a->training ? ceil(a->p * 0x1p32) : 0; /* number < p 2^32: dropped */
    struct cvy_rng rng;
    if (threshold == 0) {
        memmove(y + first, x + first, n_bytes);
    } else if (threshold == 0x1p32) {
        memset(y + first, 0, n_bytes);
    } else {
        struct keep keep = {(uint32_t)threshold, (float)(1 / (1 - a->p))};
        cvy_rng_init(&rng, (uint64_t)key[0], CVY_RNG_DROPOUT, (uint64_t)key[1], (uint32_t)a->id);
        int64_t each = me->n_rows / me->images;
        if (a->per_image)
            drop_images(&keep, &rng, (uint64_t)key[2], each, x, y, (const int64_t[]){first, end});
        else
            drop_span(&keep, &rng, (uint64_t)key[2] * (uint64_t)each, x, y, first, end);
    }
}

CPU_ROWS_KERNEL(dropout, .row = CPU_ROW_ELEMENT, .span = dropout_elements)
CPU_ROWS_KERNEL(dropout_backward, .row = CPU_ROW_ELEMENT, .span = dropout_elements)

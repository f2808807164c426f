/* Kernels whose rows have nothing to do with each other: [n_rows][n] of plain tensors, shared out among the threads
   by rows, so that a row's bits depend on its values alone, not on T, the shard or its neighbours. What is left,
   sums over all rows, is done by the calling thread in the order of the rows. */
#ifndef CVY_CPU_ROWS_H
#define CVY_CPU_ROWS_H

#include "backends/cpu/vector.h"

struct cpu_rows {
    struct cvy_kernel base;
    const struct cpu_rows_work *work;
    const void *attrs;      /* the operator's; behind the struct */
    struct cvy_shape shape; /* of the tensor that is cut into rows */
    int64_t images;         /* its dimension 0 */
    int64_t n_rows, n;
    int n_parts;
    /* of the present run; absent ones are NULL */
    void *const *in, *const *out;
    double *results; /* one per row, for `finish`; in the workspace */
};

enum cpu_row {
    CPU_ROW_ELEMENT, /* each element is a row */
    CPU_ROW_LAST,    /* the last dimension */
    CPU_ROW_IMAGE,   /* all dimensions but the first */
    CPU_ROW_ALL,     /* the whole tensor is one row */
};

struct cpu_rows_work {
    const struct cvy_kernel_impl *impl;
    bool of_output; /* output 0 is cut into rows; else input 0 */
    enum cpu_row row;
    /* Rows first .. end - 1, at least one; any thread of the team. */
    void (*span)(const struct cpu_rows *me, int64_t first, int64_t end);
    /* After all rows. NULL: nothing is left to do, and there are no `results`. */
    void (*finish)(const struct cpu_rows *me);
};

/* The slots. */
cvy_status cpu_rows_prepare(const struct cvy_device *device, const struct cvy_call *call,
                            const struct cpu_rows_work *work, struct cvy_kernel **out, size_t *scratch_bytes);
cvy_status cpu_rows_run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch);
void cpu_rows_release(struct cvy_kernel *kernel);

/* The kernel cpu_kernel_NAME of the operator NAME; the fields of its work follow the name. */
#define CPU_ROWS_KERNEL(name, ...)                                                                    \
    static cvy_status prepare_##name(struct cvy_device *device, const struct cvy_call *call,          \
                                     struct cvy_kernel **out, size_t *scratch_bytes) {                \
        static const struct cpu_rows_work work = {.impl = &CPU_REAL(cpu_kernel_##name), __VA_ARGS__}; \
        return cpu_rows_prepare(device, call, &work, out, scratch_bytes);                             \
    }                                                                                                 \
    const struct cvy_kernel_impl CPU_REAL(cpu_kernel_##name) = {                                      \
        .op = #name,                                                                                  \
        .supports = CPU_SUPPORTS_REAL,                                                                \
        .prepare = prepare_##name,                                                                    \
        .run = cpu_rows_run,                                                                          \
        .release = cpu_rows_release,                                                                  \
    };

#endif

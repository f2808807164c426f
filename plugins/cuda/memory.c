/* A GPU's memory: arenas, plain bytes between it and the host, and the host's shadow of an arena. */
#include "cuda.h"
#include "launch.h"

#include "base/thread.h"

#include <stdlib.h>
#include <sys/mman.h>

static struct cuda_arena *find(const struct cuda_device *me, const void *at) {
    for (int i = 0; i < me->n_arenas; i++) {
        const struct cuda_arena *arena = &me->arenas[i];
        if ((const char *)at >= arena->memory && (const char *)at < arena->memory + arena->n_bytes)
            return (struct cuda_arena *)arena;
    }
    return NULL;
}

cvy_status cuda_alloc(struct cvy_device *device, size_t n_bytes, void **out, double *touch_s) {
    struct cuda_device *me = cuda_device(device);
    struct cuda_arena arena = {.n_bytes = n_bytes + !n_bytes};
    int64_t start = cvy_now_ns();
    if (me->n_arenas == CUDA_MAX_ARENAS)
        return CVY_FAIL(CVY_ERR_FAILED, "%s: more than %d arenas", device->name, CUDA_MAX_ARENAS);
    void *memory;
    cudaError_t code = cudaMalloc(&memory, arena.n_bytes);
    if (code == cudaErrorMemoryAllocation)
        return CVY_FAIL(CVY_ERR_MEMORY, "%s: no %.1f MB of memory; use a smaller batch or more shards",
                        device->name, (double)n_bytes / 1e6);
    TRY_CUDA(me, code);
    arena.memory = memory;
    /* only what passes between devices through the host is ever touched: the rest takes no memory */
    arena.shadow =
        mmap(NULL, arena.n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena.shadow == MAP_FAILED) {
        (void)cudaFree(memory);
        return CVY_FAIL(CVY_ERR_MEMORY, "%s: no %.1f MB of address space on the host", device->name,
                        (double)n_bytes / 1e6);
    }
    me->arenas[me->n_arenas++] = arena;
    *out = memory;
    TRY_CUDA(me, cudaMemsetAsync(memory, 0, arena.n_bytes, cuda_stream(me)));
    CVY_TRY(cuda_wait(me, cuda_stream(me)));
    *touch_s = (double)(cvy_now_ns() - start) * 1e-9;
    return CVY_OK;
}

void cuda_release(struct cvy_device *device, void *memory, size_t n_bytes) {
    struct cuda_device *me = cuda_device(device);
    struct cuda_arena *arena = memory ? find(me, memory) : NULL;
    (void)n_bytes;
    if (!arena)
        return;
    if (cuda_settle(me)) { /* else it may still be at work there */
        (void)cudaFree(arena->memory);
        munmap(arena->shadow, arena->n_bytes);
    }
    *arena = me->arenas[--me->n_arenas];
}

void *cuda_shadow_of(const struct cuda_device *me, const void *at) {
    const struct cuda_arena *arena = find(me, at);
    return arena ? arena->shadow + ((const char *)at - arena->memory) : NULL;
}

cvy_status cuda_upload(struct cvy_device *device, void *to, const void *host, size_t n_bytes) {
    return cuda_send(cuda_device(device), to, host, n_bytes);
}

cvy_status cuda_download(struct cvy_device *device, void *host, const void *from, size_t n_bytes) {
    CVY_TRY(cuda_fetch(cuda_device(device), host, from, n_bytes));
    return cuda_arrive(cuda_device(device));
}

cvy_status cuda_zero(struct cvy_device *device, void *at, size_t n_bytes) {
    struct cuda_device *me = cuda_device(device);
    TRY_CUDA(me, cudaMemsetAsync(at, 0, n_bytes, cuda_stream(me)));
    return CVY_OK;
}

cvy_status cuda_add(struct cvy_device *device, float *sum, const float *a, const float *b, size_t n) {
    const struct cuda_args args = {.in = {a, b}, .out = {sum}};
    bool is_aligned = (((uintptr_t)sum | (uintptr_t)a | (uintptr_t)b) & 15) == 0;
    enum cuda_function function = is_aligned ? CUDA_add : CUDA_add_anywhere;
    const struct cuda_range ranges[] = {
        {a, n * sizeof *a, false}, {b, n * sizeof *b, false}, {sum, n * sizeof *sum, true}};
    return cuda_launch(cuda_device(device), &(struct cuda_launch){.function = function,
                                                                  .name = "add of partial sums",
                                                                  .args = &args,
                                                                  .n = (int64_t)n,
                                                                  .n_ranges = 3,
                                                                  .ranges = ranges});
}

cvy_status cuda_not_finite(struct cvy_device *device, const float *at, size_t n, float *flag) {
    const struct cuda_args args = {.in = {at}, .out = {flag}};
    const struct cuda_range ranges[] = {{at, n * sizeof *at, false}, {flag, sizeof *flag, true}};
    return cuda_launch(cuda_device(device),
                       &(struct cuda_launch){.function = CUDA_not_finite,
                                             .name = "search for numbers that are not finite",
                                             .args = &args,
                                             .n = (int64_t)n,
                                             .n_ranges = 2,
                                             .ranges = ranges});
}

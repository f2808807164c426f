/* Memory of the pretend GPUs: pages of their own that nobody can touch but while the GPU works. A block ends where its
   pages end, and what is freed is not mapped again for long, so that a kernel that leaves its memory crashes. */
#include "gpu.h"

#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 256 };  /* of blocks, as CUDA's */
enum { KEPT_FREED = 256 }; /* freed blocks whose addresses stay taken */
enum { RUBBISH = 0xFF };   /* what new memory holds: NaN */

struct block {
    const char *at;
    size_t n_bytes;
    int gpu;
    bool is_freed;
};

/* Of all GPUs. Locked after a GPU's lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CVY_VEC(struct block) blocks;
static size_t n_freed;

/* ---- pages ------------------------------------------------------------------------------------------------------------- */

struct pages {
    char *begin;
    size_t n_bytes;
};

static struct pages pages_of(const char *at, size_t n_bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), lead = (uintptr_t)at % page;
    return (struct pages){(char *)at - lead, cvy_align_up(lead + n_bytes, page)};
}

static void protect(const struct fake_gpu *gpu, int protection) {
    for (size_t i = 0; i < gpu->order.arenas.n; i++) {
        const struct async_arena *arena = &gpu->order.arenas.data[i];
        const struct pages pages = pages_of(arena->memory, arena->n_bytes);
        if (mprotect(pages.begin, pages.n_bytes, protection) != 0)
            abort(); /* nothing would be proved any more */
    }
}

void fake_memory_open(const struct fake_gpu *gpu) { protect(gpu, PROT_READ | PROT_WRITE); }
void fake_memory_shut(const struct fake_gpu *gpu) { protect(gpu, PROT_NONE); }

/* ---- whose memory it is ------------------------------------------------------------------------------------------------ */

/* The block that holds the address, as it is now. */
static bool find(const void *at, struct block *out) {
    bool is_found = false;
    pthread_mutex_lock(&lock);
    for (size_t i = blocks.n; i-- > 0 && !is_found;) {
        *out = blocks.data[i];
        is_found = (const char *)at >= out->at && (const char *)at < out->at + out->n_bytes;
    }
    pthread_mutex_unlock(&lock);
    return is_found;
}

cudaError_t fake_memory_check(const struct fake_gpu *gpu, const char *what, const void *at, size_t n_bytes) {
    struct block block;
    if (n_bytes == 0)
        return cudaSuccess;
    if (!find(at, &block))
        return fake_complain(cudaErrorIllegalAddress, "%s: %s touches %p, which is no GPU's memory",
                             gpu->name, what, at);
    if (block.is_freed)
        return fake_complain(cudaErrorIllegalAddress, "%s: %s touches memory of GPU %d that was freed",
                             gpu->name, what, block.gpu);
    if (block.gpu != gpu->index)
        return fake_complain(cudaErrorIllegalAddress, "%s: %s touches memory of GPU %d", gpu->name, what,
                             block.gpu);
    size_t offset = (size_t)((const char *)at - block.at);
    if (n_bytes > block.n_bytes - offset)
        return fake_complain(cudaErrorIllegalAddress,
                             "%s: %s touches %zu bytes at %zu of a block of %zu: beyond its end", gpu->name,
                             what, n_bytes, offset, block.n_bytes);
    return cudaSuccess;
}

bool fake_memory_is_host(const void *at, size_t n_bytes) {
    struct block block;
    return !find(at, &block) && (n_bytes == 0 || !find((const char *)at + n_bytes - 1, &block));
}

/* ---- the calls --------------------------------------------------------------------------------------------------------- */

static cudaError_t note(struct fake_gpu *gpu, char *at, size_t n_bytes) {
    cvy_status status = async_order_add(&gpu->order, at, n_bytes);
    if (status != CVY_OK)
        return cudaErrorMemoryAllocation;
    pthread_mutex_lock(&lock);
    status = cvy_vec_push(&blocks, ((struct block){at, n_bytes, gpu->index, false}));
    pthread_mutex_unlock(&lock);
    if (status == CVY_OK)
        return cudaSuccess;
    async_order_remove(&gpu->order, at);
    return cudaErrorMemoryAllocation;
}

static cudaError_t allocate(struct fake_gpu *gpu, size_t n_bytes, void **out) {
    const size_t taken = cvy_align_up(n_bytes, ALIGNMENT);
    const struct pages pages = pages_of(NULL, taken);
    char *memory = mmap(NULL, pages.n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return fake_complain(cudaErrorMemoryAllocation, "%s: no memory", gpu->name);
    char *at = memory + pages.n_bytes - taken;
    memset(at, RUBBISH, taken);
    (void)mprotect(memory, pages.n_bytes, PROT_NONE);
    cudaError_t code = note(gpu, at, n_bytes);
    if (code != cudaSuccess)
        munmap(memory, pages.n_bytes);
    else
        *out = at;
    return code;
}

cudaError_t cudaMalloc(void **out, size_t n_bytes) {
    struct fake_gpu *gpu;
    *out = NULL;
    cudaError_t code = fake_enter("cudaMalloc", &gpu);
    if (code != cudaSuccess)
        return code;
    code = fake_work_until_over(gpu, NULL); /* orders nothing: CUDA does not promise it */
    if (code == cudaSuccess && n_bytes > 0)
        code = allocate(gpu, n_bytes, out);
    return fake_leave(gpu, code);
}

/* Its address stays taken for a while, so that who still uses it is found. */
static void mark_freed(void *memory) {
    pthread_mutex_lock(&lock);
    size_t oldest = SIZE_MAX;
    for (size_t i = blocks.n; i-- > 0;) {
        struct block *block = &blocks.data[i];
        const struct pages pages = pages_of(block->at, block->n_bytes);
        if (!block->is_freed && block->at == memory) {
            block->is_freed = true;
            n_freed++;
            (void)mprotect(pages.begin, pages.n_bytes, PROT_NONE);
            (void)madvise(pages.begin, pages.n_bytes, MADV_DONTNEED);
        }
        oldest = block->is_freed ? i : oldest;
    }
    if (n_freed > KEPT_FREED) {
        const struct pages pages = pages_of(blocks.data[oldest].at, blocks.data[oldest].n_bytes);
        munmap(pages.begin, pages.n_bytes);
        memmove(&blocks.data[oldest], &blocks.data[oldest + 1], (--blocks.n - oldest) * sizeof *blocks.data);
        n_freed--;
    }
    pthread_mutex_unlock(&lock);
}

/* Waits for all that the GPU has to do; a broken one gives its memory back too, and says again what is wrong. */
cudaError_t cudaFree(void *memory) {
    struct fake_gpu *gpu;
    struct block block;
    if (!memory)
        return cudaSuccess;
    cudaError_t code = fake_enter_anyway("cudaFree", &gpu);
    if (!find(memory, &block) || block.at != memory || block.is_freed || block.gpu != gpu->index)
        return fake_leave(gpu,
                          fake_complain(cudaErrorInvalidValue, "%s: cudaFree of %p, which is no block of it",
                                        gpu->name, memory));
    cudaError_t worked = fake_work_until_over(gpu, NULL);
    async_order_remove(&gpu->order, memory);
    mark_freed(memory);
    return fake_leave(gpu, code != cudaSuccess ? code : worked);
}

/* Memory of the pretend GPUs: pages of their own that nobody can touch but while something runs that says it does. A
   block ends where its pages end, and what is freed is never given again: a kernel that leaves its memory crashes, or
   is told. */
#include "gpu.h"

#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 256 }; /* of blocks, as CUDA's */
enum { RUBBISH = 0xFF };  /* what new memory holds: NaN */

/* ---- pages --------------------------------------------------------------------------------------------------- */

struct pages {
    char *begin;
    size_t n_bytes;
};

static struct pages pages_of(const char *at, size_t n_bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), lead = (uintptr_t)at % page;
    return (struct pages){(char *)at - lead, cvy_align_up(lead + n_bytes, page)};
}

static void protect(struct fake_block *block, bool is_open) {
    const struct pages pages = pages_of(block->at, block->n_bytes);
    block->is_open = is_open;
    if (mprotect(pages.begin, pages.n_bytes, is_open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
        abort(); /* nothing would be proved any more */
}

bool fake_open_blocks(const struct fake_item *item) {
    for (int i = 0; i < item->n_blocks; i++) {
        struct fake_block *block = item->blocks[i];
        if (block->is_freed) {
            (void)fake_complain(cudaErrorIllegalAddress,
                                "%s (%s) touches memory of GPU %d that was freed meanwhile", item->what.op,
                                item->what.stream_name, block->gpu);
            return false;
        }
        if (!block->is_open)
            protect(block, true);
    }
    return true;
}

void fake_shut_blocks(void) {
    for (size_t i = 0; i < fake.blocks.n; i++) {
        if (fake.blocks.data[i]->is_open)
            protect(fake.blocks.data[i], false);
    }
}

/* ---- whose memory it is -------------------------------------------------------------------------------------- */

static bool holds(const struct fake_block *block, const void *at) {
    return (const char *)at >= block->at && (const char *)at < block->at + block->n_bytes;
}

static struct fake_block *find(const void *at) {
    for (size_t i = fake.blocks.n; i-- > 0;) {
        if (holds(fake.blocks.data[i], at))
            return fake.blocks.data[i];
    }
    return NULL;
}

static struct fake_block *find_freed(const void *at) {
    for (size_t i = fake.freed.n; i-- > 0;) {
        if (holds(fake.freed.data[i], at))
            return fake.freed.data[i];
    }
    return NULL;
}

struct fake_block *fake_block_of(const struct fake_gpu *gpu, const char *what, const void *at,
                                 size_t n_bytes) {
    struct fake_block *block = find(at), *freed = block ? NULL : find_freed(at);
    if (freed)
        (void)fake_complain(cudaErrorIllegalAddress, "%s: %s touches memory of GPU %d that was freed",
                            gpu->name, what, freed->gpu);
    else if (!block)
        (void)fake_complain(cudaErrorIllegalAddress, "%s: %s touches %p, which is no GPU's memory", gpu->name,
                            what, at);
    else if (!(gpu->peers >> block->gpu & 1))
        (void)fake_complain(cudaErrorIllegalAddress, "%s: %s touches memory of GPU %d", gpu->name, what,
                            block->gpu);
    else if (n_bytes > block->n_bytes - (size_t)((const char *)at - block->at))
        (void)fake_complain(cudaErrorIllegalAddress,
                            "%s: %s touches %zu bytes at %zu of a block of %zu: beyond its end", gpu->name,
                            what, n_bytes, (size_t)((const char *)at - block->at), block->n_bytes);
    else
        return block;
    return NULL;
}

bool fake_is_host_memory(const void *at, size_t n_bytes) {
    return !find(at) && (n_bytes == 0 || !find((const char *)at + n_bytes - 1));
}

static size_t n_taken(const struct fake_gpu *gpu) {
    size_t n = 0;
    for (size_t i = 0; i < fake.blocks.n; i++)
        n += fake.blocks.data[i]->gpu == gpu->index ? fake.blocks.data[i]->n_bytes : 0;
    return n;
}

/* ---- the calls ----------------------------------------------------------------------------------------------- */

static cvy_status note(struct fake_block *block) {
    char name[24];
    CVY_TRY(cvy_vec_push(&fake.blocks, block));
    cvy_status status = async_order_add(&fake.order, block->at, block->n_bytes);
    if (status != CVY_OK) {
        fake.blocks.n--;
        return status;
    }
    snprintf(name, sizeof name, "memory of GPU %d", block->gpu);
    async_order_name(&fake.order, block->at, block->n_bytes, name);
    return CVY_OK;
}

static cudaError_t allocate(const struct fake_gpu *gpu, size_t n_bytes, void **out) {
    const size_t taken = cvy_align_up(n_bytes, ALIGNMENT);
    const struct pages pages = pages_of(NULL, taken);
    struct fake_block *block;
    if (n_bytes > fake.memory_bytes - n_taken(gpu))
        return fake_complain(cudaErrorMemoryAllocation, "%s: %zu bytes of memory are no longer free",
                             gpu->name, n_bytes);
    char *memory = mmap(NULL, pages.n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || CVY_ALLOC(block, 1) != CVY_OK)
        return fake_complain(cudaErrorMemoryAllocation, "%s: no memory", gpu->name);
    *block = (struct fake_block){memory + pages.n_bytes - taken, n_bytes, gpu->index, false, false};
    memset(block->at, RUBBISH, taken);
    protect(block, false);
    if (note(block) != CVY_OK) {
        munmap(memory, pages.n_bytes);
        free(block);
        return fake_complain_status(cudaErrorMemoryAllocation);
    }
    *out = block->at;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t n_bytes) {
    *out = NULL;
    cudaError_t code = fake_enter("cudaMalloc");
    if (code == cudaSuccess)
        code = fake_refuse_in_capture("cudaMalloc", NULL);
    if (code == cudaSuccess)
        code = fake_work_until_over(fake_present(), NULL); /* orders nothing: CUDA does not promise it */
    if (code == cudaSuccess && n_bytes > 0)
        code = allocate(fake_present(), n_bytes, out);
    return fake_leave(code);
}

cudaError_t cudaMemGetInfo(size_t *n_free, size_t *total) {
    cudaError_t code = fake_enter("cudaMemGetInfo");
    *total = fake.memory_bytes;
    *n_free = fake.memory_bytes - n_taken(fake_present());
    return fake_leave(code);
}

/* Its address stays taken, so that who still uses it is found. */
static void mark_freed(struct fake_block *block) {
    const struct pages pages = pages_of(block->at, block->n_bytes);
    size_t k = 0;
    while (fake.blocks.data[k] != block)
        k++;
    fake.blocks.data[k] = fake.blocks.data[--fake.blocks.n];
    block->is_freed = true;
    protect(block, false);
    (void)madvise(pages.begin, pages.n_bytes, MADV_DONTNEED);
    (void)cvy_vec_push(&fake.freed, block); /* else less is said of who uses it */
    async_order_remove(&fake.order, block->at);
}

/* Waits for all that its GPU has to do; a broken one gives its memory back too, and says again what is wrong. */
cudaError_t cudaFree(void *memory) {
    if (!memory)
        return cudaSuccess;
    cudaError_t code = fake_enter("cudaFree");
    if (code == cudaSuccess && fake_refuse_in_capture("cudaFree", NULL) != cudaSuccess)
        return fake_leave(cudaErrorStreamCaptureUnsupported);
    struct fake_block *block = find(memory);
    if (!block || block->at != memory)
        return fake_leave(
            fake_complain(cudaErrorInvalidValue, "cudaFree of %p, which is no block of a GPU", memory));
    cudaError_t worked = fake_work_until_over(&fake.gpus[block->gpu], NULL);
    mark_freed(block);
    return fake_leave(code != cudaSuccess ? code : worked);
}

/* Checked allocation and pools.
   Results go out by memcpy: `out` is really the address of some other kind of pointer, which C does not let
   us write through a void **. Invariant of a pool: the first block is the one with room. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 4096, POOL_ALIGN = 16 };

struct cvy_pool_block {
    struct cvy_pool_block *next;
    size_t used, cap;
    _Alignas(POOL_ALIGN) unsigned char bytes[];
};

cvy_status cvy_alloc_items(size_t n, size_t size, void **out) {
    bool fits = size == 0 || n <= PTRDIFF_MAX / size;
    void *made = fits ? calloc(n ? n : 1, size ? size : 1) : NULL;
    memcpy(out, &made, sizeof made);
    if (!made)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for %zu items of %zu bytes", n, size);
    return CVY_OK;
}

cvy_status cvy_pool_alloc(struct cvy_pool *pool, size_t n_bytes, void **out) {
    struct cvy_pool_block *block = pool->blocks;
    if (n_bytes > SIZE_MAX - sizeof *block - POOL_ALIGN)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for %zu bytes", n_bytes);
    size_t need = cvy_align_up(n_bytes ? n_bytes : 1, POOL_ALIGN);
    if (!block || need > block->cap - block->used) {
        size_t cap = need > BLOCK_BYTES ? need : BLOCK_BYTES;
        block = calloc(1, sizeof *block + cap);
        if (!block)
            return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for %zu bytes", cap);
        block->cap = cap;
        block->next = pool->blocks;
        pool->blocks = block;
    }
    void *made = block->bytes + block->used;
    block->used += need;
    memcpy(out, &made, sizeof made);
    return CVY_OK;
}

cvy_status cvy_pool_copy(struct cvy_pool *pool, const void *bytes, size_t n_bytes, void **out) {
    void *made;
    CVY_TRY(cvy_pool_alloc(pool, n_bytes, &made));
    if (n_bytes)
        memcpy(made, bytes, n_bytes);
    memcpy(out, &made, sizeof made);
    return CVY_OK;
}

cvy_status cvy_pool_strdup(struct cvy_pool *pool, const char *text, char **out) {
    void *made;
    CVY_TRY(cvy_pool_copy(pool, text, strlen(text) + 1, &made));
    *out = made;
    return CVY_OK;
}

cvy_status cvy_pool_printf(struct cvy_pool *pool, char **out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0)
        return CVY_FAIL(CVY_ERR_FAILED, "text cannot be formatted: %s", format);
    void *made;
    CVY_TRY(cvy_pool_alloc(pool, (size_t)n + 1, &made));
    va_start(args, format);
    vsnprintf(made, (size_t)n + 1, format, args);
    va_end(args);
    *out = made;
    return CVY_OK;
}

void cvy_pool_free(struct cvy_pool *pool) {
    while (pool->blocks) {
        struct cvy_pool_block *next = pool->blocks->next;
        free(pool->blocks);
        pool->blocks = next;
    }
}

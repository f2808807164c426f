/* Host memory: checked allocation, and a pool whose blocks are freed together. */
#ifndef CVY_BASE_MEM_H
#define CVY_BASE_MEM_H

#include "base/status.h"

#include <stdint.h>

enum { CVY_ALIGN = 64 }; /* bytes; every tensor starts at such a boundary (oneDNN's Winograd needs it) */

static inline size_t cvy_align_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

/* n zeroed items of `size` bytes, checked for overflow. *out = NULL and CVY_ERR_MEMORY when there is none.
   Owner: the caller, who calls free(). n = 0 gives a valid pointer. */
cvy_status cvy_alloc_items(size_t n, size_t size, void **out);
#define CVY_ALLOC(pointer, n) cvy_alloc_items((n), sizeof *(pointer), (void **)&(pointer))

/* A pool of small blocks, for what lives and dies with one owner (names and attributes of a graph).
   Zero-initialised is empty. Blocks are zeroed and 16-byte aligned. Not thread-safe. */
struct cvy_pool {
    struct cvy_pool_block *blocks;
};
cvy_status cvy_pool_alloc(struct cvy_pool *pool, size_t n_bytes, void **out);
cvy_status cvy_pool_copy(struct cvy_pool *pool, const void *bytes, size_t n_bytes, void **out);
cvy_status cvy_pool_strdup(struct cvy_pool *pool, const char *text, char **out);
cvy_status cvy_pool_printf(struct cvy_pool *pool, char **out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void cvy_pool_free(struct cvy_pool *pool);

#endif

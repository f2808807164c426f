/* Fresh pages are dear, above all on virtual machines (0.24 GB/s for pages of 4 KB, against 25 GB/s warm). So a
   device maps one arena, in huge pages (2 MB, aligned), and faults it in at once. */
#include "backends/cpu/arena.h"
#include "backends/cpu/team.h"
#include "base/mem.h"
#include "base/thread.h"

#include <sys/mman.h>

static const size_t HUGE_PAGE = (size_t)2 << 20;
static const size_t PAGE = 4096;

struct touch {
    char *memory;
    size_t n_bytes;
};

/* Writing one byte of a fresh anonymous page makes it a page of zeros. */
static void touch_part(void *context, int part, int n_parts) {
    struct touch *touch = context;
    int64_t first, end;
    cpu_part((int64_t)touch->n_bytes, (int64_t)HUGE_PAGE, part, n_parts, &first, &end);
    for (int64_t at = first; at < end; at += (int64_t)PAGE)
        *(volatile char *)(touch->memory + at) = 0;
}

/* Small pieces are not worth a huge page. */
static size_t page_of(size_t n_bytes) { return n_bytes < HUGE_PAGE ? PAGE : HUGE_PAGE; }

cvy_status cpu_arena_map(size_t n_bytes, int n_threads, void **out, double *touch_s) {
    size_t page = page_of(n_bytes), size = cvy_align_up(n_bytes + !n_bytes, page), padded = size + page;
    char *base = padded < n_bytes
                     ? MAP_FAILED
                     : mmap(NULL, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return CVY_FAIL(CVY_ERR_MEMORY,
                        "no %.1f MB of memory for a device; use a smaller batch or more shards",
                        (double)n_bytes / 1e6);
    char *memory = (char *)cvy_align_up((size_t)base, page);
    size_t head = (size_t)(memory - base), tail = padded - head - size;
    if (head)
        munmap(base, head);
    if (tail)
        munmap(memory + size, tail);
    if (page == HUGE_PAGE)
        madvise(memory, size, MADV_HUGEPAGE); /* refused: small pages will do */

    int64_t start = cvy_now_ns();
    cpu_team_run(n_threads, touch_part, &(struct touch){memory, size});
    *touch_s = (double)(cvy_now_ns() - start) * 1e-9;
    *out = memory;
    return CVY_OK;
}

void cpu_arena_unmap(void *memory, size_t n_bytes) {
    if (memory)
        munmap(memory, cvy_align_up(n_bytes + !n_bytes, page_of(n_bytes)));
}

/* libgomp's entry points are declared here, not through <omp.h> and #pragma: then clang builds the same code, and
   no second OpenMP runtime can slip in. */
#include "backends/cpu/team.h"

void GOMP_parallel(void (*body)(void *), void *context, unsigned n_threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
void omp_set_num_threads(int n);
void omp_set_dynamic(int is_dynamic);

/* libgomp orders what happens before, in and after a region by bare futexes, which ThreadSanitizer cannot see:
   it is told at the same four places. */
#ifdef CVY_TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#else
static void __tsan_acquire(void *address) { (void)address; }
static void __tsan_release(void *address) { (void)address; }
#endif

struct region {
    cpu_body body;
    void *context;
    int n_parts;
};

/* A team may come out smaller than asked for: then its threads take several parts. */
static void run_parts(void *argument) {
    struct region *region = argument;
    __tsan_acquire(region);
    int step = omp_get_num_threads();
    for (int part = omp_get_thread_num(); part < region->n_parts; part += step)
        region->body(region->context, part, region->n_parts);
    __tsan_release(region);
}

void cpu_team_size(int n_threads) {
    omp_set_dynamic(0);
    omp_set_num_threads(n_threads);
}

void cpu_team_run(int n_parts, cpu_body body, void *context) {
    if (n_parts == 1) {
        body(context, 0, 1);
        return;
    }
    struct region region = {body, context, n_parts};
    __tsan_release(&region);
    GOMP_parallel(run_parts, &region, (unsigned)n_parts, 0);
    __tsan_acquire(&region);
}

/* In the step loop Convoy's own code allocates nothing and touches no fresh page. The linker's --wrap sends every
   allocation of our objects through this file; what oneDNN allocates inside a primitive is not ours to count. */
#include "base/rng.h"
#include "cvy_test.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#ifdef CVY_SANITIZED
enum { COUNTS_FAULTS = 0 }; /* a sanitizer's shadow memory and quarantine fault on their own account */
#else
enum { COUNTS_FAULTS = 1 };
#endif

enum { BATCH = 32, N_STEPS = 8 };

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);

static atomic_long n_allocations; /* the one mutable global: the linker's hooks take no argument */

void *__wrap_malloc(size_t n) {
    atomic_fetch_add(&n_allocations, 1);
    return __real_malloc(n);
}
void *__wrap_calloc(size_t n, size_t size) {
    atomic_fetch_add(&n_allocations, 1);
    return __real_calloc(n, size);
}
void *__wrap_realloc(void *old, size_t n) {
    atomic_fetch_add(&n_allocations, 1);
    return __real_realloc(old, n);
}
void *__wrap_aligned_alloc(size_t align, size_t n) {
    atomic_fetch_add(&n_allocations, 1);
    return __real_aligned_alloc(align, n);
}

static long page_faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static void steady_on(const char *devices) {
    static float images[BATCH * 3 * 32 * 32];
    static int64_t labels[BATCH];
    struct cvy_rng rng;
    cvy_graph *g;
    cvy_plan *plan;
    cvy_session *session;
    cvy_rng_init(&rng, 1, CVY_RNG_TEST, 0, 0);
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        images[i] = (float)cvy_rng_normal(&rng);
    assert_ok(cvy_graph_new(&g));
    cvy_value logits = cvy_model(g, "resnet20", cvy_input(g, "images", 3, 32, 32), 10);
    cvy_output(g, "logits", logits);
    cvy_cross_entropy(g, logits, cvy_labels(g), 0);
    cvy_plan_options options = {.devices = devices,
                                .batch_size = BATCH,
                                .threads_per_device = 1,
                                .shards = 4,
                                .optimizer = "sgd",
                                .optimizer_attributes = "momentum=0.9"};
    assert_ok(cvy_plan_new(g, &options, &plan));
    assert_ok(cvy_session_new(plan, &session));
    cvy_batch batch = {.n = BATCH,
                       .channels = 3,
                       .height = 32,
                       .width = 32,
                       .dtype = CVY_F32,
                       .order = CVY_NCHW,
                       .images = images,
                       .labels = labels,
                       .std = {1, 1, 1, 1}};
    long before = atomic_load(&n_allocations), faults = 0;
    assert_true(before > 0); /* the hooks are in place */
    for (int i = 0; i < N_STEPS; i++) {
        if (i == 2) { /* the first steps may still touch a thread's stack or a library's tables */
            before = atomic_load(&n_allocations);
            faults = page_faults();
        }
        assert_ok(cvy_step(session, &batch));
    }
    assert_int_equal(atomic_load(&n_allocations) - before, 0);
    faults = page_faults() - faults;
    print_message("%s: %ld page faults in %d steps\n", devices, faults, N_STEPS - 2);
    if (COUNTS_FAULTS)
        assert_true(faults < 2 * (N_STEPS - 2)); /* none of ours: an arena touched late would cost hundreds */
    cvy_session_free(session);
    cvy_plan_free(plan);
    cvy_graph_free(g);
}

static void steady_on_one_device(void **state) {
    (void)state;
    steady_on("cpu:0");
}

static void steady_on_two_devices(void **state) {
    (void)state;
    steady_on("cpu:0-1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steady_on_one_device),
        cmocka_unit_test(steady_on_two_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

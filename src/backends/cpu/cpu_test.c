/* The CPU backend against the operators' references, and its promise of equal bits. Every device runs in a thread
   of its own, as the engine's executors do. */
#include "base/thread.h"
#include "rt/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Sanitizers look for faults of memory and threads: one seed for each way of working is enough. */
#ifdef CVY_SANITIZED
enum { N_ROUNDS = 1 };
#else
enum { N_ROUNDS = 2 };
#endif

/* ThreadSanitizer does not see the synchronisation inside libgomp: with it, teams of one. */
#ifdef CVY_TSAN
#define MAX_THREADS 1
#else
#define MAX_THREADS 16
#endif

struct job {
    struct cvy_device_spec spec;
    uint64_t seed;
    const char *layout, *only; /* as cvy_check_run takes them */
    cvy_dtype narrow;
    struct cvy_check_table table;
    cvy_status status;
    char error[256];
};

static cvy_status run_checks(struct job *job) {
    struct cvy_device *device;
    const struct cvy_backend *backend = cvy_backend_find("cpu");
    CVY_TRY(backend->open(&job->spec, &device));
    cvy_status status = backend->enter(device);
    if (status == CVY_OK)
        status = cvy_check_run(
            device,
            &(struct cvy_check_what){
                .seed = job->seed, .layout = job->layout, .only = job->only, .narrow = job->narrow},
            &job->table);
    backend->close(device);
    return status;
}

static void *job_main(void *argument) {
    struct job *job = argument;
    job->status = run_checks(job);
    strncpy(job->error, cvy_error(), sizeof job->error - 1);
    return NULL;
}

/* Runs n jobs at once. */
static void run_jobs(struct job *jobs, int n) {
    pthread_t threads[4];
    for (int i = 0; i < n; i++)
        assert_int_equal(cvy_thread_start(&threads[i], "check", job_main, &jobs[i]), CVY_OK);
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        if (jobs[i].status != CVY_OK)
            fail_msg("%s", jobs[i].error);
    }
}

/* Where Winograd is asked for, its transforms cost some accuracy in every convolution that it can take. */
static bool has_passed(const struct job *job, const struct cvy_check_result *r) {
    bool is_winograd = job->spec.conv_algo && strncmp(r->op->name, "conv2d", 6) == 0;
    return r->has_passed || (is_winograd && r->error <= 5e-5);
}

/* What no network runs here: float16, and softmax in another type than float32. */
static bool is_left_out(const struct job *job, const struct cvy_check_result *r) {
    const struct cvy_case *c = &r->op->cases[r->case_index];
    if (strcmp(r->op->name, "cast") == 0)
        return strncmp(c->attrs, "f16", 3) == 0 || strncmp(c->inputs, "f16", 3) == 0;
    return job->narrow != CVY_F32 && strncmp(r->op->name, "softmax", 7) == 0;
}

/* Does the backend have a kernel for this operator? One without runs its reference, on this backend too. */
static bool has_kernel(const char *op) {
    const struct cvy_kernel_impl *const *kernel = cvy_backend_find("cpu")->kernels;
    while (*kernel && strcmp((*kernel)->op, op) != 0)
        kernel++;
    return *kernel != NULL;
}

static void assert_all_passed(const struct job *job) {
    int n_failed = 0;
    assert_true(job->table.results.n > 0);
    for (size_t i = 0; i < job->table.results.n; i++) {
        const struct cvy_check_result *r = &job->table.results.data[i];
        if (r->is_fallback && has_kernel(r->op->name) && !is_left_out(job, r))
            fail_msg("%s, case %d fell back to its reference", r->op->name, r->case_index);
        if (has_passed(job, r))
            continue;
        n_failed++;
        print_error("%s, case %d (%s), T=%d, from %s: error %g, allowed %g %s\n", r->op->name, r->case_index,
                    r->op->cases[r->case_index].attrs, job->spec.n_threads,
                    job->layout ? job->layout : "plain", r->error, r->tolerance, r->reason);
    }
    assert_int_equal(n_failed, 0);
}

static struct job make_job(int n_threads, uint64_t seed, const char *layout) {
    n_threads = n_threads < MAX_THREADS ? n_threads : MAX_THREADS;
    return (struct job){.spec = {.n_threads = n_threads, .n_local = 1}, .seed = seed, .layout = layout};
}

static void test_conformance(const char *layout, int n_threads) {
    struct job job = make_job(n_threads, (uint64_t)cvy_now_ns(), layout);
    run_jobs(&job, 1);
    assert_all_passed(&job);
    cvy_check_free(&job.table);
}

static void from_plain(void **state) {
    (void)state;
    test_conformance(NULL, 1);
    test_conformance(NULL, 2);
}

static void from_blocked(void **state) {
    (void)state;
    test_conformance("aBcd16b", 1);
    test_conformance("aBcd16b", 2);
    test_conformance("aBcd8b", 2);
}

static void from_channels_last(void **state) {
    (void)state;
    test_conformance("acdb", 1);
    test_conformance("acdb", 3);
}

static void in_bf16(void **state) {
    static const char *const layouts[] = {NULL, "aBcd16b", "aBcd8b", "acdb"};
    const char *reason = cvy_backend_find("cpu")->amp_refusal(CVY_BF16);
    (void)state;
    if (reason) {
        print_message("skipped: %s\n", reason);
        skip();
    }
    for (int k = 0; k < 4 * N_ROUNDS;
         k++) { /* both numbers of threads; in two rounds, each in every layout */
        struct job job = make_job(1 + (k + k / 4) % 2, (uint64_t)cvy_now_ns(), layouts[k % 4]);
        job.narrow = CVY_BF16;
        run_jobs(&job, 1);
        assert_all_passed(&job);
        cvy_check_free(&job.table);
    }
}

static const char *const conv_ops[] = {"conv2d", "conv2d_backward_data", "conv2d_backward_weights"};

static void winograd(void **state) {
    (void)state;
    for (int k = 0; k < 6; k++) {
        struct job job = make_job(1 + k % 2, (uint64_t)cvy_now_ns(), NULL);
        job.spec.conv_algo = "winograd";
        job.only = conv_ops[k / 2];
        run_jobs(&job, 1);
        assert_all_passed(&job);
        cvy_check_free(&job.table);
    }
}

/* The same work on two devices at the same moment, and on one alone afterwards. */
static void assert_equal_bits(int n_threads, const char *conv_algo, const char *only) {
    struct job jobs[3];
    for (int i = 0; i < 3; i++) {
        jobs[i] = make_job(n_threads, 7, NULL);
        jobs[i].spec.conv_algo = conv_algo;
        jobs[i].only = only;
        jobs[i].spec.n_local = i < 2 ? 2 : 1;
        jobs[i].spec.local_index = jobs[i].spec.index = i % 2;
    }
    run_jobs(jobs, 2);
    run_jobs(jobs + 2, 1);
    assert_true(jobs[0].table.bits == jobs[1].table.bits);
    assert_true(jobs[0].table.bits == jobs[2].table.bits);
    for (int i = 0; i < 3; i++)
        cvy_check_free(&jobs[i].table);
}

static void equal_bits(void **state) {
    (void)state;
    for (int n_threads = 2; n_threads > 2 - N_ROUNDS; n_threads--) {
        assert_equal_bits(n_threads, NULL, NULL);
        for (int k = 0; k < 3; k++)
            assert_equal_bits(n_threads, "winograd", conv_ops[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_plain), cmocka_unit_test(from_blocked), cmocka_unit_test(from_channels_last),
        cmocka_unit_test(in_bf16),    cmocka_unit_test(winograd),     cmocka_unit_test(equal_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

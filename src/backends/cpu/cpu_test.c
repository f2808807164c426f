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

struct job {
    struct cvy_device_spec spec;
    uint64_t seed;
    const char *layout;
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
        status = cvy_check_run(device, job->seed, job->layout, getenv("CVY_TEST_OP"), &job->table);
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

/* Small work, once per step or per image: left to the references. Everything else must be native. */
static bool may_fall_back(const struct cvy_op *op) {
    static const char *const names[] = {
        "accuracy",         "batch_mean",    "batch_mean_backward",    "batch_norm_update",
        "constant",         "cross_entropy", "cross_entropy_backward", "dropout",
        "dropout_backward", "mean",          "mean_backward",          "softmax",
        "softmax_backward",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(op->name, names[i]) == 0)
            return true;
    }
    return false;
}

static void assert_all_passed(const struct job *job) {
    assert_true(job->table.results.n > 0);
    for (size_t i = 0; i < job->table.results.n; i++) {
        const struct cvy_check_result *r = &job->table.results.data[i];
        if (!r->has_passed)
            print_error("%s, case %d (%s), T=%d, from %s: error %g, allowed %g %s\n", r->op->name,
                        r->case_index, r->op->cases[r->case_index].attrs, job->spec.n_threads,
                        job->layout ? job->layout : "plain", r->error, r->tolerance, r->reason);
        if (r->is_fallback && !may_fall_back(r->op))
            fail_msg("%s fell back to its reference", r->op->name);
    }
    assert_int_equal(job->table.n_failed, 0);
}

static struct job make_job(int n_threads, uint64_t seed, const char *layout) {
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

/* Two devices at work at the same moment, and one alone afterwards. */
static void equal_bits(void **state) {
    (void)state;
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        struct job jobs[3];
        for (int i = 0; i < 3; i++) {
            jobs[i] = make_job(n_threads, 7, NULL);
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
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_plain),
        cmocka_unit_test(from_blocked),
        cmocka_unit_test(from_channels_last),
        cmocka_unit_test(equal_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The transport `mpi` through the suite for all transports, in every process that mpirun started. Without mpirun:
   that it says so. */
#include "comm/transport_conformance.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TIMEOUT_S = 60 };

static const cvy_log_sink none;

/* ---- alone ------------------------------------------------------------------------------------------- */

static void test_not_launched(void **state) {
    (void)state;
    const struct cvy_transport *mpi = cvy_transport_find("mpi");
    struct cvy_world *world;
    assert_non_null(mpi);
    assert_false(mpi->is_launched());
    assert_null(cvy_transport_launched());
    assert_fails(mpi->join(1, &none, &world), CVY_ERR_UNSUPPORTED, "mpirun");
}

static void test_no_plugin(void **state) {
    (void)state;
    const struct cvy_transport *mpi = cvy_transport_find("mpi");
    struct cvy_world *world;
    setenv("PMI_SIZE", "1", 1);
    setenv("CONVOY_PLUGINS", "/nowhere:", 1);
    assert_ptr_equal(cvy_transport_launched(), mpi);
    assert_fails(mpi->join(1, &none, &world), CVY_ERR_UNSUPPORTED, "libmpich-dev");
    assert_non_null(strstr(cvy_error(), "/nowhere"));
    unsetenv("PMI_SIZE");
    unsetenv("CONVOY_PLUGINS");
}

/* Groups within a process need neither plugin nor mpirun. */
static int run_alone(const struct cvy_transport *mpi) {
    _Alignas(64) unsigned char shared[SHARED_BYTES];
    struct suite suite = {.transport = mpi, .shared = shared};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_not_launched), cmocka_unit_test(test_no_plugin)};
    return cmocka_run_group_tests(tests, NULL, NULL) + transport_conformance(&suite);
}

/* ---- launched ------------------------------------------------------------------------------------------ */

/* A file that all processes map: rank 0 makes it and says where. */
static cvy_status share(struct suite *suite) {
    char path[] = "/tmp/convoy-suite-XXXXXX";
    int file = -1;
    if (suite->worlds[0]->rank == 0) {
        file = mkstemp(path);
        if (file < 0 || ftruncate(file, SHARED_BYTES) != 0)
            return CVY_FAIL(CVY_ERR_IO, "cannot make %s", path);
        close(file);
    }
    CVY_TRY(suite->transport->broadcast(suite->meeting, 0, path, sizeof path, "file"));
    file = open(path, O_RDWR);
    suite->shared = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || suite->shared == MAP_FAILED)
        return CVY_FAIL(CVY_ERR_IO, "cannot map %s", path);
    close(file);
    CVY_TRY(suite->transport->barrier(suite->meeting, "mapped"));
    if (suite->worlds[0]->rank == 0)
        unlink(path);
    return CVY_OK;
}

static cvy_status run_launched(struct suite *suite, int *n_failed) {
    int32_t process[64];
    struct cvy_group *members[64];
    CVY_TRY(suite->transport->join(TIMEOUT_S, &none, &suite->worlds[0]));
    suite->n_worlds = 1;
    int n = suite->worlds[0]->size;
    for (int i = 0; i < n; i++)
        process[i] = i;
    struct cvy_group_spec spec = {
        .world = suite->worlds[0], .n = n, .process = process, .timeout_s = TIMEOUT_S};
    CVY_TRY(suite->transport->open(&spec, members));
    suite->meeting = members[suite->worlds[0]->rank];
    CVY_TRY(share(suite));
    *n_failed = transport_conformance(suite);
    if (*n_failed == 0)
        CVY_TRY(suite->transport->barrier(suite->meeting, "end"));
    suite->transport->close(n, members);
    return suite->transport->leave(suite->worlds[0], *n_failed == 0 ? NULL : "the suite failed");
}

int main(void) {
    struct suite suite = {.transport = cvy_transport_launched()};
    if (!suite.transport)
        return run_alone(cvy_transport_find("mpi"));
    int n_failed = 0;
    if (run_launched(&suite, &n_failed) != CVY_OK) {
        fprintf(stderr, "%s [%s]\n", cvy_error(), cvy_error_trace());
        return 1;
    }
    return n_failed;
}

/* Copies with pinned memory happen when the stream gets there; who touches the memory before is found out. */
#include "fakecuda_case.h"

static char *pinned_bytes(void) {
    void *memory;
    assert_done(cudaHostAlloc(&memory, BYTES, cudaHostAllocDefault));
    memset(memory, 7, BYTES);
    return memory;
}

static void finish(struct gpu *gpu, char *pinned) {
    assert_done(cudaSetDevice(0));
    (void)cudaFreeHost(pinned);
    close_gpu(gpu, 0);
}

static void test_copies(void **state) {
    (void)state;
    struct gpu gpu;
    open_gpu(&gpu, 0);
    char *pinned = pinned_bytes();
    assert_done(cudaMemcpyAsync(gpu.memory, pinned, 100, cudaMemcpyHostToDevice, gpu.stream[0]));
    assert_done(cudaMemcpyAsync(pinned + 200, gpu.memory, 100, cudaMemcpyDeviceToHost, gpu.stream[0]));
    assert_int_not_equal(pinned[200], 7); /* not there without a wait */
    assert_done(cudaEventRecord(gpu.event, gpu.stream[0]));
    cudaError_t code;
    while ((code = cudaEventQuery(gpu.event)) == cudaErrorNotReady)
        ;
    assert_done(code);
    assert_int_equal(pinned[200], 7);
    assert_int_equal(pinned[299], 7);
    assert_int_equal(pinned[300], 7);
    finish(&gpu, pinned);
}

/* Waits for stream 0: an error, which stays. */
static void assert_found_out(struct gpu *gpu, const char *words) {
    assert_refused(cudaStreamSynchronize(gpu->stream[0]), cudaErrorIllegalAddress, words);
}

static void test_changed_too_early(void **state) {
    (void)state;
    struct gpu gpu;
    open_gpu(&gpu, 0);
    char *pinned = pinned_bytes();
    assert_done(cudaMemcpyAsync(gpu.memory, pinned, 100, cudaMemcpyHostToDevice, gpu.stream[0]));
    pinned[99] = 8;
    assert_found_out(&gpu, "pinned memory was touched before upload");
    finish(&gpu, pinned);
}

static void test_used_for_two_downloads(void **state) {
    (void)state;
    struct gpu gpu;
    open_gpu(&gpu, 0);
    char *pinned = pinned_bytes();
    assert_done(cudaMemsetAsync(gpu.memory, 1, 100, gpu.stream[0]));
    for (int k = 0; k < 2; k++)
        assert_done(cudaMemcpyAsync(pinned, gpu.memory, 100, cudaMemcpyDeviceToHost, gpu.stream[0]));
    assert_found_out(&gpu, "pinned memory was touched before download");
    finish(&gpu, pinned);
}

/* An event that the host has waited for orders what was before it, and nothing else. */
static void test_waits_for_events(void **state) {
    (void)state;
    for (int is_waited = 0; is_waited < 2; is_waited++) {
        struct gpu gpu;
        open_gpu(&gpu, 0);
        assert_done(enqueue_touch(gpu.stream[0], "first", gpu.memory, 8, true));
        assert_done(cudaEventRecord(gpu.event, gpu.stream[0]));
        assert_done(enqueue_touch(gpu.stream[0], "second", gpu.memory + 1024, 8, true));
        while (is_waited && cudaEventQuery(gpu.event) == cudaErrorNotReady)
            ;
        if (is_waited)
            assert_done(enqueue_touch(gpu.stream[1], "third", gpu.memory, 8, true));
        assert_refused(enqueue_touch(gpu.stream[1], "fourth", gpu.memory + (is_waited ? 1024 : 0), 8, true),
                       cudaErrorUnknown, is_waited ? "second" : "first");
        close_gpu(&gpu, 0);
    }
}

static void test_wrong_calls(void **state) {
    (void)state;
    struct gpu gpu;
    char host[8];
    open_gpu(&gpu, 0);
    assert_refused(cudaFreeHost(host), cudaErrorInvalidValue, "which is not pinned");
    assert_refused(cudaEventQuery((cudaEvent_t)(void *)host), cudaErrorInvalidResourceHandle, "no event");
    close_gpu(&gpu, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_changed_too_early),
        cmocka_unit_test(test_used_for_two_downloads),
        cmocka_unit_test(test_waits_for_events),
        cmocka_unit_test(test_wrong_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

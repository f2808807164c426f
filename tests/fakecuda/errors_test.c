/* What a GPU would not forgive, the stand-in does not either: memory that is not the GPU's, calls on what is gone,
   and what a test orders to fail. */
#include "fakecuda_case.h"

#include "base/thread.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static void test_copies(void **state) {
    (void)state;
    struct gpu gpu;
    char host[BYTES], back[BYTES];
    float fresh;
    open_gpu(&gpu, 0);
    assert_done(cudaMemcpyAsync(&fresh, gpu.memory, sizeof fresh, cudaMemcpyDeviceToHost, gpu.stream[0]));
    assert_true(isnan(fresh)); /* new memory is not zero */
    memset(host, 7, sizeof host);
    assert_done(cudaMemcpyAsync(gpu.memory, host, BYTES, cudaMemcpyHostToDevice, gpu.stream[0]));
    memset(host, 8, sizeof host); /* too late for the copy, which took its bytes */
    assert_done(cudaMemsetAsync(gpu.memory + 1, 9, 2, gpu.stream[0]));
    assert_done(cudaMemcpyAsync(back, gpu.memory, BYTES, cudaMemcpyDeviceToHost, gpu.stream[0]));
    assert_int_equal(back[0], 7); /* there without any wait */
    assert_int_equal(back[1], 9);
    assert_int_equal(back[2], 9);
    assert_int_equal(back[BYTES - 1], 7);
    assert_done(cudaMemcpyAsync(gpu.memory, NULL, 0, cudaMemcpyHostToDevice, gpu.stream[0]));
    close_gpu(&gpu, 0);
}

static void test_wrong_copies(void **state) {
    (void)state;
    struct gpu gpu;
    char host[8];
    open_gpu(&gpu, 0);
    assert_refused(cudaMemcpyAsync(gpu.memory, gpu.memory, 8, cudaMemcpyHostToDevice, gpu.stream[0]),
                   cudaErrorInvalidValue, "takes a GPU's memory for the host's");
    assert_refused(cudaMemcpyAsync(gpu.memory, gpu.memory, 8, cudaMemcpyDeviceToHost, gpu.stream[0]),
                   cudaErrorInvalidValue, "takes a GPU's memory for the host's");
    assert_refused(cudaMemcpyAsync(host, host, 8, cudaMemcpyHostToHost, gpu.stream[0]),
                   cudaErrorInvalidMemcpyDirection, "lacks copies of kind 0");
    assert_done(cudaStreamSynchronize(gpu.stream[0])); /* none of it breaks a GPU */
    assert_refused(cudaMemcpyAsync(host, host, 8, cudaMemcpyDeviceToDevice, gpu.stream[0]),
                   cudaErrorIllegalAddress, "which is no GPU's memory");
    close_gpu(&gpu, 0);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Touches it on GPU 1: an error that says `words`, and stays. */
static void touch_wrongly(char *at, size_t n, const char *words) {
    struct gpu gpu;
    open_gpu(&gpu, 1);
    assert_done(enqueue_touch(gpu.stream[0], "good", gpu.memory, 8, true));
    assert_refused(enqueue_touch(gpu.stream[0], "bad", at ? at : gpu.memory + BYTES - 8, n, false),
                   cudaErrorIllegalAddress, words);
    assert_refused(cudaStreamSynchronize(gpu.stream[0]), cudaErrorIllegalAddress, words);
    assert_refused(cudaStreamQuery(gpu.stream[1]), cudaErrorIllegalAddress, words);
    assert_refused(enqueue_touch(gpu.stream[1], "good", gpu.memory, 8, true), cudaErrorIllegalAddress, words);
    assert_refused(cudaFree(gpu.memory), cudaErrorIllegalAddress, words);
    assert_int_equal(cudaEventRecord(gpu.event, gpu.stream[0]), cudaErrorIllegalAddress);
    close_gpu(&gpu, 1);
}

static void test_wrong_memory(void **state) {
    (void)state;
    struct gpu other, well;
    char host[8];
    void *freed;
    open_gpu(&other, 2);
    touch_wrongly(other.memory, 8, "GPU 1: bad touches memory of GPU 2");
    assert_done(cudaSetDevice(2));
    assert_done(cudaStreamSynchronize(other.stream[0])); /* the other one is well */
    close_gpu(&other, 2);
    touch_wrongly(other.memory, 8, "GPU 1: bad touches memory of GPU 2 that was freed");
    touch_wrongly(host, sizeof host, "which is no GPU's memory");
    touch_wrongly(NULL, 9, "bad touches 9 bytes at 4188 of a block of 4196: beyond its end");
    open_gpu(&well, 1);
    assert_done(cudaMalloc(&freed, 100));
    assert_done(cudaFree(freed));
    close_gpu(&well, 1);
    touch_wrongly(freed, 1, "GPU 1: bad touches memory of GPU 1 that was freed");
}

static void test_wrong_frees(void **state) {
    (void)state;
    struct gpu gpu;
    void *memory;
    char host;
    open_gpu(&gpu, 0);
    assert_done(cudaFree(NULL));
    assert_done(cudaMalloc(&memory, 10));
    assert_refused(cudaFree((char *)memory + 1), cudaErrorInvalidValue, "which is no block of a GPU");
    assert_done(cudaFree(memory));
    assert_refused(cudaFree(memory), cudaErrorInvalidValue, "which is no block of a GPU");
    assert_refused(cudaFree(&host), cudaErrorInvalidValue, "which is no block of a GPU");
    close_gpu(&gpu, 0);
}

/* Freeing waits for what uses the memory. */
static void test_free_waits(void **state) {
    (void)state;
    struct gpu gpu;
    void *memory;
    char text[4] = "";
    open_gpu(&gpu, 0);
    assert_done(cudaMalloc(&memory, 10));
    assert_done(enqueue_touch(gpu.stream[1], "use", memory, 10, true));
    assert_done(enqueue_letter(gpu.stream[1], text, 'a'));
    assert_done(cudaFree(memory));
    assert_string_equal(text, "a");
    close_gpu(&gpu, 0);
}

static char *victim;
static void read_it(void) { exit(*(volatile char *)victim == 3); }
static void write_it(void) {
    *(volatile char *)victim = 3;
    exit(0);
}

/* Dies of it, in a process of its own. */
static void assert_crashes(char *at, void (*run)(void)) {
    int status;
    victim = at;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        run();
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/* The host cannot touch a GPU's memory, even when the GPU has just worked; a kernel that leaves it crashes. */
static void test_memory_is_shut(void **state) {
    (void)state;
    struct gpu gpu;
    open_gpu(&gpu, 0);
    assert_crashes(gpu.memory, read_it);
    assert_crashes(gpu.memory + BYTES - 1, write_it);
    assert_done(enqueue_touch(gpu.stream[0], "use", gpu.memory, BYTES, true));
    assert_done(cudaStreamSynchronize(gpu.stream[0]));
    assert_crashes(gpu.memory, read_it);
    assert_crashes(gpu.memory, write_it);
    close_gpu(&gpu, 0);
    assert_crashes(gpu.memory, read_it); /* and what is freed does not come back */
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

static void test_wrong_handles(void **state) {
    (void)state;
    struct gpu one, two;
    int n;
    assert_done(cudaGetDeviceCount(&n));
    assert_int_equal(n, 8);
    assert_int_equal(cudaSetDevice(8), cudaErrorInvalidDevice);
    order_of_test("FAKECUDA_DEVICES", "3");
    assert_done(cudaGetDeviceCount(&n));
    assert_int_equal(n, 3);
    assert_refused(cudaSetDevice(3), cudaErrorInvalidDevice, "no GPU 3 of 3");
    order_of_test("FAKECUDA_DEVICES", "none");
    assert_refused(cudaSetDevice(0), cudaErrorInvalidValue, "FAKECUDA_DEVICES='none': give a number");
    order_of_test("FAKECUDA_DEVICES", NULL);
    open_gpu(&one, 0);
    open_gpu(&two, 1); /* now the thread's */
    assert_done(cudaStreamSynchronize(one.stream[0]));
    assert_refused(enqueue_touch(one.stream[0], "use", one.memory, 1, true), cudaErrorInvalidResourceHandle,
                   "GPU 1: use is launched into stream 0 of GPU 0");
    assert_refused(cudaEventRecord(one.event, two.stream[0]), cudaErrorInvalidResourceHandle,
                   "an event of GPU 0 is recorded in stream 2 of GPU 1");
    assert_refused(cudaStreamWaitEvent(NULL, two.event, 0), cudaErrorInvalidResourceHandle,
                   "this is no stream");
    close_gpu(&one, 0);
    close_gpu(&two, 1);
    assert_int_equal(cudaStreamQuery(two.stream[0]), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventDestroy(two.event), cudaErrorInvalidResourceHandle);
}

/* ---- ordered faults ---------------------------------------------------------------------------------------------- */

static void test_a_call_fails(void **state) {
    (void)state;
    struct gpu gpu;
    void *memory;
    order_of_test("FAKECUDA_FAIL", "device=1,op=cudaMalloc,n=2");
    open_gpu(&gpu, 1); /* the first */
    assert_refused(cudaMalloc(&memory, 8), cudaErrorMemoryAllocation,
                   "GPU 1: cudaMalloc fails, as FAKECUDA_FAIL orders");
    assert_null(memory);
    assert_done(cudaMalloc(&memory, 8));
    assert_done(cudaFree(memory));
    close_gpu(&gpu, 1);
    open_gpu(&gpu, 0); /* not meant */
    assert_done(cudaMalloc(&memory, 8));
    assert_done(cudaFree(memory));
    close_gpu(&gpu, 0);
    order_of_test("FAKECUDA_FAIL", NULL);
}

static void test_work_fails(void **state) {
    (void)state;
    static const char words[] = "GPU 1: letter (stream 0 of GPU 1) fails, as FAKECUDA_FAIL orders";
    struct gpu gpu;
    char text[8] = "";
    order_of_test("FAKECUDA_FAIL", "op=letter,n=2");
    open_gpu(&gpu, 1);
    for (const char *l = "abc"; *l; l++)
        assert_done(enqueue_letter(gpu.stream[0], text, *l)); /* as CUDA does: not before it runs */
    assert_refused(cudaStreamSynchronize(gpu.stream[0]), cudaErrorLaunchFailure, words);
    assert_string_equal(text, "a");
    assert_refused(enqueue_letter(gpu.stream[0], text, 'd'), cudaErrorLaunchFailure, words);
    assert_refused(cudaStreamSynchronize(gpu.stream[1]), cudaErrorLaunchFailure, words);
    close_gpu(&gpu, 1);
    order_of_test("FAKECUDA_FAIL", NULL);
}

static void test_a_stall(void **state) {
    (void)state;
    struct gpu gpu;
    char text[8] = "", other[8] = "";
    order_of_test("FAKECUDA_STALL", "device=1,op=letter,n=2,seconds=0.2");
    open_gpu(&gpu, 1);
    for (const char *l = "abc"; *l; l++)
        assert_done(enqueue_letter(gpu.stream[0], text, *l));
    assert_done(enqueue_letter(gpu.stream[1], other, 'x'));
    int64_t start = cvy_now_ns();
    while ((double)(cvy_now_ns() - start) < 0.1e9)
        assert_int_equal(cudaStreamQuery(gpu.stream[0]), cudaErrorNotReady);
    assert_string_equal(text, "a");
    assert_done(cudaStreamSynchronize(gpu.stream[1])); /* streams do not wait for each other */
    assert_string_equal(other, "x");
    assert_done(cudaStreamSynchronize(gpu.stream[0]));
    assert_true((double)(cvy_now_ns() - start) >= 0.2e9);
    assert_string_equal(text, "abc");
    close_gpu(&gpu, 1);
    order_of_test("FAKECUDA_STALL", NULL);
}

static void test_faults_are_read(void **state) {
    (void)state;
    cudaStream_t stream;
    order_of_test("FAKECUDA_STALL", "device=0,step=3");
    assert_done(cudaSetDevice(0));
    assert_refused(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaErrorInvalidValue,
                   "FAKECUDA_STALL='device=0,step=3': write device=N,op=NAME,n=N,seconds=X");
    order_of_test("FAKECUDA_STALL", NULL);
    order_of_test("FAKECUDA_SEED", "-1");
    assert_refused(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaErrorInvalidValue,
                   "FAKECUDA_SEED='-1': give a number from 0");
    order_of_test("FAKECUDA_SEED", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),          cmocka_unit_test(test_wrong_copies),
        cmocka_unit_test(test_wrong_memory),    cmocka_unit_test(test_wrong_frees),
        cmocka_unit_test(test_free_waits),      cmocka_unit_test(test_memory_is_shut),
        cmocka_unit_test(test_wrong_handles),   cmocka_unit_test(test_a_call_fails),
        cmocka_unit_test(test_work_fails),      cmocka_unit_test(test_a_stall),
        cmocka_unit_test(test_faults_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Graphs of the stand-in: nothing runs while it is captured, a launch does what was captured, with the arguments of
   then, in any order that its events leave open, and what a capture does not allow is refused. */
#include "fakecuda_case.h"

static void begin(const struct gpu *gpu) {
    assert_done(cudaStreamBeginCapture(gpu->stream[0], cudaStreamCaptureModeThreadLocal));
}

static cudaGraphExec_t end(const struct gpu *gpu) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    assert_done(cudaStreamEndCapture(gpu->stream[0], &graph));
    assert_done(cudaGraphInstantiate(&exec, graph, 0));
    assert_done(cudaGraphDestroy(graph));
    return exec;
}

/* What enters stream 1 comes after all in stream `from`, and the other way round. */
static void follow(const struct gpu *gpu, int from) {
    assert_done(cudaEventRecord(gpu->event, gpu->stream[from]));
    assert_done(cudaStreamWaitEvent(gpu->stream[!from], gpu->event, 0));
}

static void test_replays(void **state) {
    (void)state;
    struct gpu gpu;
    char text[32] = "";
    struct letter letter = {text, 'a'};
    open_gpu(&gpu, 1);
    begin(&gpu);
    assert_done(fake_enqueue(gpu.stream[0], "letter", NULL, 0, write_letter, &letter, sizeof letter));
    letter.letter = '?'; /* too late: arguments are values */
    assert_done(enqueue_letter(gpu.stream[0], text, 'b'));
    assert_done(enqueue_letter(gpu.stream[1], text, '-')); /* is no part of it */
    cudaGraphExec_t exec = end(&gpu);
    assert_done(cudaStreamSynchronize(gpu.stream[0]));
    assert_done(cudaStreamSynchronize(gpu.stream[1]));
    assert_string_equal(text, "-");
    for (int i = 0; i < 3; i++)
        assert_done(cudaGraphLaunch(exec, gpu.stream[i % 2]));
    assert_done(cudaGraphExecDestroy(exec)); /* what was launched goes on */
    assert_done(cudaStreamSynchronize(gpu.stream[0]));
    assert_done(cudaStreamSynchronize(gpu.stream[1]));
    assert_int_equal(strlen(text), 7);
    assert_null(strchr(text, '?'));
    close_gpu(&gpu, 1);
}

/* a, then b c in stream 0 and x y z in stream 1, where y waits for b, then d. */
static void run_letters(int seed, char *text) {
    struct gpu gpu;
    char number[16];
    snprintf(number, sizeof number, "%d", seed);
    order_of_test("FAKECUDA_SEED", number);
    open_gpu(&gpu, 0);
    text[0] = '\0';
    begin(&gpu);
    for (const char *l = "axbyzcd"; *l; l++) {
        if (*l == 'd')
            follow(&gpu, 1);
        assert_done(enqueue_letter(gpu.stream[*l >= 'x'], text, *l));
        if (*l == 'a' || *l == 'b')
            follow(&gpu, 0);
    }
    cudaGraphExec_t exec = end(&gpu);
    assert_done(cudaGraphLaunch(exec, gpu.stream[0]));
    assert_done(cudaStreamSynchronize(gpu.stream[0]));
    assert_done(cudaGraphExecDestroy(exec));
    close_gpu(&gpu, 0);
    order_of_test("FAKECUDA_SEED", NULL);
}

static int place(const char *text, char letter) { return (int)(strchr(text, letter) - text); }

static void test_orders(void **state) {
    enum { N_SEEDS = 300, MOST = 32 };
    enum { N_POSSIBLE = 7 }; /* 10 ways to mix b c with x y z, but for the 3 in which y is before b */
    char found[MOST][16];
    int n_found = 0;
    (void)state;
    for (int seed = 0; seed < N_SEEDS; seed++) {
        char text[16];
        int k = 0;
        run_letters(seed, text);
        assert_int_equal(strlen(text), 7);
        assert_true(text[0] == 'a' && text[6] == 'd' && place(text, 'b') < place(text, 'c'));
        assert_true(place(text, 'x') < place(text, 'y') && place(text, 'y') < place(text, 'z'));
        assert_true(place(text, 'b') < place(text, 'y'));
        while (k < n_found && strcmp(found[k], text) != 0)
            k++;
        assert_true(k < MOST);
        if (k == n_found)
            strcpy(found[n_found++], text);
    }
    assert_int_equal(n_found, N_POSSIBLE); /* each of them, and no other */
}

/* ---- races and freed memory ---------------------------------------------------------------------------------- */

static void test_races_within(void **state) {
    (void)state;
    for (int k = 0; k < 8; k++) {
        const bool first_writes = k & 1, then_writes = k >> 1 & 1, has_event = k >> 2 & 1;
        struct gpu gpu;
        cudaGraph_t graph;
        open_gpu(&gpu, 0);
        begin(&gpu);
        follow(&gpu, 0);
        assert_done(enqueue_touch(gpu.stream[0], "first", gpu.memory, 100, first_writes));
        if (has_event)
            follow(&gpu, 0);
        assert_done(enqueue_touch(gpu.stream[1], "then", gpu.memory + 99, 64, then_writes));
        follow(&gpu, 1);
        if (has_event || !(first_writes || then_writes))
            assert_done(cudaStreamEndCapture(gpu.stream[0], &graph));
        else
            assert_refused(cudaStreamEndCapture(gpu.stream[0], &graph), cudaErrorUnknown,
                           "no event orders then after first within a graph");
        if (graph)
            assert_done(cudaGraphDestroy(graph));
        close_gpu(&gpu, 0);
    }
}

/* A launch is ordered with what is around it as every other call is. */
static void test_races_around(void **state) {
    (void)state;
    for (int has_event = 0; has_event < 2; has_event++) {
        struct gpu gpu;
        open_gpu(&gpu, 0);
        begin(&gpu);
        assert_done(enqueue_touch(gpu.stream[0], "captured", gpu.memory, 64, false));
        cudaGraphExec_t exec = end(&gpu);
        assert_done(enqueue_touch(gpu.stream[0], "before", gpu.memory, 64, true));
        if (has_event)
            follow(&gpu, 0);
        if (has_event)
            assert_done(cudaGraphLaunch(exec, gpu.stream[1]));
        else
            assert_refused(cudaGraphLaunch(exec, gpu.stream[1]), cudaErrorUnknown,
                           "no event orders captured (stream 1 of GPU 0)");
        assert_done(cudaGraphExecDestroy(exec));
        close_gpu(&gpu, 0);
    }
}

static void test_freed_memory(void **state) {
    (void)state;
    struct gpu gpu;
    open_gpu(&gpu, 0);
    begin(&gpu);
    assert_done(enqueue_touch(gpu.stream[0], "touch", gpu.memory, 64, true));
    cudaGraphExec_t exec = end(&gpu);
    assert_done(cudaGraphLaunch(exec, gpu.stream[0]));
    assert_done(cudaFree(gpu.memory));
    assert_refused(cudaGraphLaunch(exec, gpu.stream[0]), cudaErrorIllegalAddress, "that was freed");
    assert_done(cudaGraphExecDestroy(exec));
    gpu.memory = NULL;
    close_gpu(&gpu, 0);
}

/* ---- what is refused ----------------------------------------------------------------------------------------- */

static cudaError_t call_malloc(struct gpu *gpu) {
    void *memory;
    (void)gpu;
    cudaError_t code = cudaMalloc(&memory, 64);
    (void)cudaFree(memory);
    return code;
}

static cudaError_t call_free(struct gpu *gpu) { return cudaFree(gpu->memory); }

static cudaError_t call_synchronize(struct gpu *gpu) { return cudaStreamSynchronize(gpu->stream[0]); }

static cudaError_t call_query(struct gpu *gpu) { return cudaStreamQuery(gpu->stream[0]); }

/* Of an event that has nothing to do with the capture. */
static cudaError_t call_event_query(struct gpu *gpu) {
    cudaError_t code;
    do
        code = cudaEventQuery(gpu->event);
    while (code == cudaErrorNotReady);
    return code;
}

static cudaError_t call_host_alloc(struct gpu *gpu) {
    void *memory;
    (void)gpu;
    cudaError_t code = cudaHostAlloc(&memory, 64, cudaHostAllocDefault);
    (void)cudaFreeHost(memory);
    return code;
}

static cudaError_t call_upload(struct gpu *gpu) {
    static const char bytes[8];
    return cudaMemcpyAsync(gpu->memory, bytes, sizeof bytes, cudaMemcpyHostToDevice, gpu->stream[0]);
}

static cudaError_t call_download(struct gpu *gpu) {
    char bytes[8];
    return cudaMemcpyAsync(bytes, gpu->memory, sizeof bytes, cudaMemcpyDeviceToHost, gpu->stream[0]);
}

/* Recorded before the capture began. */
static cudaError_t call_wait(struct gpu *gpu) { return cudaStreamWaitEvent(gpu->stream[0], gpu->event, 0); }

static const struct {
    cudaError_t (*call)(struct gpu *gpu);
    cudaError_t code;
} refused[] = {
    {call_malloc, cudaErrorStreamCaptureUnsupported},
    {call_free, cudaErrorStreamCaptureUnsupported},
    {call_synchronize, cudaErrorStreamCaptureUnsupported},
    {call_query, cudaErrorStreamCaptureUnsupported},
    {call_upload, cudaErrorStreamCaptureUnsupported},
    {call_download, cudaErrorStreamCaptureUnsupported},
    {call_event_query, cudaErrorStreamCaptureUnsupported},
    {call_host_alloc, cudaErrorStreamCaptureUnsupported},
    {call_wait, cudaErrorStreamCaptureIsolation},
};

static void test_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct gpu gpu;
        cudaGraph_t graph;
        char text[8] = "";
        open_gpu(&gpu, 0);
        assert_done(cudaEventRecord(gpu.event, gpu.stream[1]));
        begin(&gpu);
        assert_int_equal(refused[i].call(&gpu), refused[i].code);
        assert_int_equal(enqueue_letter(gpu.stream[0], text, 'a'), cudaErrorStreamCaptureInvalidated);
        assert_int_equal(cudaStreamEndCapture(gpu.stream[0], &graph), cudaErrorStreamCaptureInvalidated);
        assert_null(graph);
        assert_done(enqueue_letter(gpu.stream[0], text, 'b')); /* the GPU is well */
        assert_done(refused[i].call(&gpu));
        gpu.memory = refused[i].call == call_free ? NULL : gpu.memory;
        assert_done(cudaStreamSynchronize(gpu.stream[0]));
        assert_string_equal(text, "b");
        close_gpu(&gpu, 0);
    }
}

static void test_streams_left_behind(void **state) {
    (void)state;
    struct gpu gpu;
    cudaGraph_t graph;
    char text[8] = "";
    open_gpu(&gpu, 0);
    begin(&gpu);
    follow(&gpu, 0);
    assert_done(enqueue_letter(gpu.stream[1], text, 'a'));
    assert_int_equal(cudaStreamEndCapture(gpu.stream[1], &graph), cudaErrorIllegalState);
    assert_int_equal(cudaStreamEndCapture(gpu.stream[0], &graph), cudaErrorStreamCaptureUnjoined);
    assert_int_equal(cudaStreamWaitEvent(gpu.stream[0], gpu.event, 0), cudaErrorCapturedEvent);
    assert_int_equal(cudaEventQuery(gpu.event), cudaErrorCapturedEvent);
    begin(&gpu); /* and never ended */
    assert_int_equal(cudaStreamBeginCapture(gpu.stream[1], cudaStreamCaptureModeThreadLocal),
                     cudaErrorIllegalState);
    assert_done(enqueue_letter(gpu.stream[0], text, 'a'));
    close_gpu(&gpu, 0);
    assert_string_equal(text, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replays),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_races_within),
        cmocka_unit_test(test_races_around),
        cmocka_unit_test(test_freed_memory),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_streams_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

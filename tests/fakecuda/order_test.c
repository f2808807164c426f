/* Streams and events of the stand-in: what they order and what they leave open, and that a race is found whatever
   happened to run first. */
#include "fakecuda_case.h"

#include <pthread.h>

/* ---- orders ------------------------------------------------------------------------------------------------------ */

/* a b c in stream 0, x y z in stream 1, where y waits for b. */
static void run_letters(int seed, char *text) {
    struct gpu gpu;
    char number[16];
    snprintf(number, sizeof number, "%d", seed);
    order_of_test("FAKECUDA_SEED", number);
    open_gpu(&gpu, 3);
    text[0] = '\0';
    for (const char *l = "abxyzc"; *l; l++) {
        int s = *l >= 'x';
        if (*l == 'y')
            assert_done(cudaStreamWaitEvent(gpu.stream[1], gpu.event, 0));
        assert_done(enqueue_letter(gpu.stream[s], text, *l));
        if (*l == 'b')
            assert_done(cudaEventRecord(gpu.event, gpu.stream[0]));
    }
    assert_string_equal(text, ""); /* nothing happens before somebody waits */
    assert_done(cudaStreamSynchronize(gpu.stream[0]));
    assert_non_null(strchr(text, 'c'));
    assert_done(cudaStreamSynchronize(gpu.stream[1]));
    close_gpu(&gpu, 3);
    order_of_test("FAKECUDA_SEED", NULL);
}

static int place(const char *text, char letter) { return (int)(strchr(text, letter) - text); }

static void test_orders(void **state) {
    enum { N_SEEDS = 300, MOST = 32 };
    enum { N_POSSIBLE = 20 / 2 }; /* two threes interleave in 20 ways, in half of them b is before y */
    char found[MOST][16];
    int n_found = 0;
    (void)state;
    for (int seed = 0; seed < N_SEEDS; seed++) {
        char text[16], again[16];
        int k = 0;
        run_letters(seed, text);
        run_letters(seed, again);
        assert_string_equal(text, again);
        assert_int_equal(strlen(text), 6);
        assert_true(place(text, 'a') < place(text, 'b') && place(text, 'b') < place(text, 'c'));
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

/* Only asking makes it go on too, a little at a time. */
static void test_query(void **state) {
    (void)state;
    struct gpu gpu;
    char text[1024] = "";
    cudaError_t code;
    int n_asked = 0;
    open_gpu(&gpu, 0);
    for (int i = 0; i < 1000; i++)
        assert_done(enqueue_letter(gpu.stream[i % 2], text, '.'));
    while ((code = cudaStreamQuery(gpu.stream[0])) == cudaErrorNotReady)
        n_asked++;
    assert_done(code);
    assert_true(n_asked > 1 && n_asked < 1000);
    while ((code = cudaStreamQuery(gpu.stream[1])) == cudaErrorNotReady)
        n_asked++;
    assert_done(code);
    assert_int_equal(strlen(text), 1000);
    close_gpu(&gpu, 0);
}

/* An event that was never recorded is over; a wait means the newest record before it, not one that follows. */
static void test_records(void **state) {
    (void)state;
    for (int seed = 0; seed < 20; seed++) {
        struct gpu gpu;
        char text[16] = "", number[16];
        snprintf(number, sizeof number, "%d", seed);
        order_of_test("FAKECUDA_SEED", number);
        open_gpu(&gpu, 0);
        assert_done(cudaStreamWaitEvent(gpu.stream[1], gpu.event, 0));
        assert_done(enqueue_letter(gpu.stream[0], text, 'a'));
        assert_done(cudaEventRecord(gpu.event, gpu.stream[0]));
        assert_done(enqueue_letter(gpu.stream[0], text, 'b'));
        assert_done(cudaEventRecord(gpu.event, gpu.stream[0]));
        assert_done(cudaStreamWaitEvent(gpu.stream[1], gpu.event, 0));
        assert_done(enqueue_letter(gpu.stream[1], text, 'c'));
        assert_done(cudaEventRecord(gpu.event, gpu.stream[1]));
        assert_done(cudaStreamSynchronize(gpu.stream[1]));
        assert_string_equal(text, "abc");
        close_gpu(&gpu, 0);
    }
    order_of_test("FAKECUDA_SEED", NULL);
}

/* ---- races ------------------------------------------------------------------------------------------------------- */

enum how { NOTHING, EVENT, EARLY_EVENT, HOST, OTHER_HOST, ASKED, N_HOWS };

/* `first` in stream 0, `then` in stream 1, and what orders them. */
static cudaError_t two_accesses(struct gpu *gpu, bool first_writes, bool then_writes, enum how how) {
    if (how == EARLY_EVENT)
        assert_done(cudaEventRecord(gpu->event, gpu->stream[0]));
    assert_done(enqueue_touch(gpu->stream[0], "first", gpu->memory + 64, 100, first_writes));
    if (how == EVENT)
        assert_done(cudaEventRecord(gpu->event, gpu->stream[0]));
    if (how == EVENT || how == EARLY_EVENT)
        assert_done(cudaStreamWaitEvent(gpu->stream[1], gpu->event, 0));
    if (how == HOST || how == OTHER_HOST)
        assert_done(cudaStreamSynchronize(gpu->stream[how == OTHER_HOST]));
    while (how == ASKED && cudaStreamQuery(gpu->stream[0]) == cudaErrorNotReady)
        continue;
    return enqueue_touch(gpu->stream[1], "then", gpu->memory + 128, 64, then_writes);
}

static void test_races(void **state) {
    (void)state;
    for (int k = 0; k < 4 * N_HOWS; k++) {
        const bool first_writes = k & 1, then_writes = k >> 1 & 1;
        const enum how how = (enum how)(k >> 2);
        struct gpu gpu;
        open_gpu(&gpu, 2);
        const bool is_ordered = how == EVENT || how == HOST || how == ASKED;
        cudaError_t code = two_accesses(&gpu, first_writes, then_writes, how);
        if (is_ordered || !(first_writes || then_writes)) {
            assert_done(code);
        } else {
            assert_refused(code, cudaErrorUnknown, "no event orders then (stream 1 of GPU 2), which ");
            assert_refused(code, cudaErrorUnknown, "after first (stream 0 of GPU 2), which ");
        }
        assert_done(cudaStreamSynchronize(gpu.stream[0])); /* the GPU itself is well */
        assert_done(cudaStreamSynchronize(gpu.stream[1]));
        close_gpu(&gpu, 2);
    }
}

/* What waits for an event comes after what that stream had waited for. */
static void test_order_is_carried_on(void **state) {
    (void)state;
    struct gpu gpu;
    cudaEvent_t second;
    cudaStream_t third;
    open_gpu(&gpu, 0);
    assert_done(cudaEventCreateWithFlags(&second, 0));
    assert_done(cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking));
    assert_done(enqueue_touch(gpu.stream[0], "a", gpu.memory, 10, true));
    assert_done(cudaEventRecord(gpu.event, gpu.stream[0]));
    assert_done(cudaStreamWaitEvent(gpu.stream[1], gpu.event, 0));
    assert_done(cudaEventRecord(second, gpu.stream[1]));
    assert_done(cudaStreamWaitEvent(third, second, 0));
    assert_done(enqueue_touch(third, "b", gpu.memory, 10, true));
    assert_refused(enqueue_touch(gpu.stream[1], "c", gpu.memory, 1, false), cudaErrorUnknown,
                   "after b (stream 2 of GPU 0)");
    assert_done(cudaStreamSynchronize(third));
    assert_done(enqueue_touch(gpu.stream[0], "d", gpu.memory, 10, true));
    assert_done(cudaStreamDestroy(third));
    assert_done(cudaEventDestroy(second));
    close_gpu(&gpu, 0);
}

/* ---- several GPUs ------------------------------------------------------------------------------------------------ */

/* GPU 1 writes, GPU 0 reads it there: when it may reach it, and after the event. */
static cudaError_t read_from_peer(struct gpu *zero, struct gpu *one, bool is_ordered) {
    assert_done(cudaSetDevice(1));
    assert_done(enqueue_touch(one->stream[1], "write", one->memory, 64, true));
    assert_done(cudaEventRecord(one->event, one->stream[1]));
    if (is_ordered)
        assert_done(cudaStreamWaitEvent(zero->stream[0], one->event, 0));
    assert_done(cudaSetDevice(0));
    return enqueue_touch(zero->stream[0], "read", one->memory, 64, false);
}

static void test_peers(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        struct gpu zero, one;
        open_gpu(&one, 1);
        open_gpu(&zero, 0);
        if (k > 0)
            assert_done(cudaDeviceEnablePeerAccess(1, 0));
        cudaError_t code = read_from_peer(&zero, &one, k != 1);
        if (k == 0)
            assert_refused(code, cudaErrorIllegalAddress, "GPU 0: read touches memory of GPU 1");
        else if (k == 1)
            assert_refused(code, cudaErrorUnknown,
                           "no event orders read (stream 2 of GPU 0), which reads its memory, after write "
                           "(stream 1 of GPU 1)");
        else
            assert_done(code);
        close_gpu(&one, 1);
        close_gpu(&zero, 0);
    }
}

static void test_peer_access(void **state) {
    (void)state;
    struct gpu gpu;
    int can = -1;
    open_gpu(&gpu, 0);
    assert_done(cudaDeviceCanAccessPeer(&can, 0, 1));
    assert_int_equal(can, 1);
    assert_done(cudaDeviceEnablePeerAccess(1, 0));
    assert_int_equal(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
    assert_int_equal(cudaGetLastError(), cudaErrorPeerAccessAlreadyEnabled);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    close_gpu(&gpu, 0);
    order_of_test("FAKECUDA_PEERS", "0");
    open_gpu(&gpu, 0);
    assert_done(cudaDeviceCanAccessPeer(&can, 0, 1));
    assert_int_equal(can, 0);
    assert_int_equal(cudaDeviceEnablePeerAccess(1, 0), cudaErrorInvalidDevice);
    close_gpu(&gpu, 0);
    order_of_test("FAKECUDA_PEERS", NULL);
}

/* A wait holds over GPUs too, whoever works what off. */
static void test_order_over_gpus(void **state) {
    (void)state;
    for (int seed = 0; seed < 20; seed++) {
        struct gpu zero, one;
        char text[16] = "", number[16];
        snprintf(number, sizeof number, "%d", seed);
        order_of_test("FAKECUDA_SEED", number);
        open_gpu(&one, 1);
        for (const char *l = "abc"; *l; l++)
            assert_done(enqueue_letter(one.stream[0], text, *l));
        assert_done(cudaEventRecord(one.event, one.stream[0]));
        open_gpu(&zero, 0);
        assert_done(cudaStreamWaitEvent(zero.stream[0], one.event, 0));
        assert_done(enqueue_letter(zero.stream[0], text, 'd'));
        assert_done(cudaStreamSynchronize(zero.stream[0]));
        assert_string_equal(text, "abcd");
        close_gpu(&zero, 0);
        close_gpu(&one, 1);
    }
    order_of_test("FAKECUDA_SEED", NULL);
}

/* ---- several threads --------------------------------------------------------------------------------------------- */

enum { N_THREADS = 8, N_ROUNDS = 50 };

static void *work_on_one(void *argument) {
    const int index = *(const int *)argument;
    struct gpu gpu;
    open_gpu(&gpu, index % 4); /* two threads share a GPU */
    for (int round = 0; round < N_ROUNDS; round++) {
        unsigned char sent = (unsigned char)(index + round), got = 0;
        assert_done(cudaMemcpyAsync(gpu.memory, &sent, 1, cudaMemcpyHostToDevice, gpu.stream[0]));
        assert_done(cudaEventRecord(gpu.event, gpu.stream[0]));
        assert_done(cudaStreamWaitEvent(gpu.stream[1], gpu.event, 0));
        assert_done(
            cudaMemcpyAsync(gpu.memory + 1024, gpu.memory, 1, cudaMemcpyDeviceToDevice, gpu.stream[1]));
        assert_done(cudaMemcpyAsync(&got, gpu.memory + 1024, 1, cudaMemcpyDeviceToHost, gpu.stream[1]));
        assert_int_equal(got, sent);
    }
    close_gpu(&gpu, index % 4);
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    pthread_t threads[N_THREADS];
    int index[N_THREADS];
    for (int t = 0; t < N_THREADS; t++) {
        index[t] = t;
        assert_int_equal(pthread_create(&threads[t], NULL, work_on_one, &index[t]), 0);
    }
    for (int t = 0; t < N_THREADS; t++)
        pthread_join(threads[t], NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_races),
        cmocka_unit_test(test_order_is_carried_on),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_peer_access),
        cmocka_unit_test(test_order_over_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

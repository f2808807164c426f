/* For tests of the stand-in for CUDA: a GPU with two streams, and things to put into them. */
#ifndef FAKECUDA_CASE_H
#define FAKECUDA_CASE_H

#include "fakecuda.h"

#include "cvy_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define assert_done(call)                                         \
    do {                                                          \
        cudaError_t code_ = (call);                               \
        if (code_ != cudaSuccess)                                 \
            fail_msg("%s: %s", #call, cudaGetErrorString(code_)); \
    } while (0)

/* It must fail with this code, and its text must have these words in it. */
#define assert_refused(call, code, words)                                                 \
    do {                                                                                  \
        assert_int_equal((call), (code));                                                 \
        if (!strstr(cudaGetErrorString(code), (words)))                                   \
            fail_msg("%s: '%s', without '%s'", #call, cudaGetErrorString(code), (words)); \
    } while (0)

struct gpu {
    cudaStream_t stream[2];
    cudaEvent_t event;
    char *memory; /* BYTES of it */
};
enum { BYTES = 4096 + 100 };

static inline void open_gpu(struct gpu *gpu, int index) {
    void *memory;
    assert_done(cudaSetDevice(index));
    for (int s = 0; s < 2; s++)
        assert_done(cudaStreamCreateWithFlags(&gpu->stream[s], cudaStreamNonBlocking));
    assert_done(cudaEventCreateWithFlags(&gpu->event, cudaEventDisableTiming));
    assert_done(cudaMalloc(&memory, BYTES));
    gpu->memory = memory;
}

/* Whatever state it is in. */
static inline void close_gpu(struct gpu *gpu, int index) {
    assert_done(cudaSetDevice(index));
    (void)cudaFree(gpu->memory);
    (void)cudaEventDestroy(gpu->event);
    for (int s = 0; s < 2; s++)
        (void)cudaStreamDestroy(gpu->stream[s]);
}

/* With FAKECUDA_`name`=value for the GPUs that are opened next; NULL: without. */
static inline void order_of_test(const char *variable, const char *value) {
    assert_int_equal(value ? setenv(variable, value, 1) : unsetenv(variable), 0);
}

/* ---- work that leaves its letter ------------------------------------------------------------------------------ */

struct letter {
    char *text, letter;
};

static inline void write_letter(void *payload) {
    const struct letter *l = payload;
    size_t n = strlen(l->text);
    l->text[n] = l->letter;
    l->text[n + 1] = '\0';
}

static inline cudaError_t enqueue_letter(cudaStream_t stream, char *text, char letter) {
    const struct letter payload = {text, letter};
    return fake_enqueue(stream, "letter", NULL, 0, write_letter, &payload, sizeof payload);
}

/* ---- work that touches memory ------------------------------------------------------------------------------------ */

struct touch {
    char *at;
    size_t n;
    bool is_write;
};

static inline void run_touch(void *payload) {
    const struct touch *t = payload;
    volatile char *at = t->at;
    for (size_t i = 0; i < t->n; i++)
        at[i] = t->is_write ? 1 : at[i];
}

static inline cudaError_t enqueue_touch(cudaStream_t stream, const char *name, char *at, size_t n,
                                        bool is_write) {
    const struct touch payload = {at, n, is_write};
    const struct cuda_range range = {at, n, is_write};
    return fake_enqueue(stream, name, &range, 1, run_touch, &payload, sizeof payload);
}

#endif

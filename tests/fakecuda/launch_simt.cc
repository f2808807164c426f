/* The CUDA code of launch_device.cu on the host, thread by thread: what the loops of launch_host.c stand for is here what
   the GPU runs. Blocks run one after the other; the 256 threads of a block are contexts that run in a random order, each
   until it comes to a barrier, so that a barrier which is missing shows as a wrong result, and one that not all come to
   ends the program. */
#include <cuda_runtime_api.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

/* what bodies of functions call, which fakecuda.h brings in */
#define CUDA_SIMT
template <class T> static T __shfl_xor_sync(unsigned lanes, T value, int offset);
static void __syncthreads();
#include "fakecuda.h"

#undef __global__
#undef __device__
#undef __shared__
#define __global__
#define __device__
#define __shared__ static thread_local

enum { STACK_BYTES = 32 << 10, N_WARPS = CUDA_THREADS / CUDA_WARP };

/* ---- the threads of a block --------------------------------------------------------------------------------------------- */

struct barrier {
    int size, n_here;
    unsigned generation;
};

/* Contexts are entered once, then left and resumed by _setjmp and _longjmp: swapcontext calls the kernel each time, and most
   of a test is switches. */
struct block {
    jmp_buf scheduler, thread[CUDA_THREADS];
    char *stacks;
    bool is_entered[CUDA_THREADS], is_done[CUDA_THREADS];
    int n_done, n_moves; /* moves: threads that ended, and barriers that all came to */
    struct barrier whole, warp[N_WARPS];
    double passed[CUDA_THREADS]; /* from lane to lane */
    void (*body)(const void *kernel);
    const void *kernel;
};

static thread_local struct block *block; /* the one that runs */
static thread_local dim3 threadIdx, blockIdx, gridDim;

static void thread_main();

/* From the scheduler to a thread, until it pauses. */
static void resume(unsigned thread) {
    if (_setjmp(block->scheduler))
        return;
    if (block->is_entered[thread])
        _longjmp(block->thread[thread], 1);
    block->is_entered[thread] = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = block->stacks + thread * (size_t)STACK_BYTES;
    context.uc_stack.ss_size = STACK_BYTES;
    context.uc_link = NULL;
    makecontext(&context, thread_main, 0);
    setcontext(&context);
}

/* From a thread to the scheduler. */
static void pause_thread(unsigned me) {
    if (_setjmp(block->thread[me]) == 0)
        _longjmp(block->scheduler, 1);
}

static void wait_at(struct barrier *b) {
    unsigned generation = b->generation;
    unsigned me = threadIdx.x;
    if (++b->n_here == b->size) {
        b->n_here = 0;
        b->generation++;
        block->n_moves++;
        return;
    }
    while (b->generation == generation)
        pause_thread(me);
}

static void __syncthreads() { wait_at(&block->whole); }

/* The value of another lane of the warp. */
template <class T> static T pass(T value, int from) {
    unsigned me = threadIdx.x, first = me / CUDA_WARP * CUDA_WARP;
    struct barrier *warp = &block->warp[me / CUDA_WARP];
    block->passed[me] = value;
    wait_at(warp);
    T other = (T)block->passed[first + from];
    wait_at(warp);
    return other;
}

template <class T> static T __shfl_xor_sync(unsigned, T value, int offset) {
    return pass(value, (int)(threadIdx.x % CUDA_WARP) ^ offset);
}

template <class T> static T __shfl_down_sync(unsigned, T value, int offset) {
    int me = threadIdx.x % CUDA_WARP;
    return pass(value, me + offset < CUDA_WARP ? me + offset : me);
}

/* The same thread of one block after the other. */
static void thread_main() {
    unsigned me = threadIdx.x;
    for (;;) {
        block->body(block->kernel);
        block->is_done[me] = true;
        block->n_done++;
        block->n_moves++;
        pause_thread(me);
    }
}

/* ---- blocks ------------------------------------------------------------------------------------------------------------- */

static void start_threads() {
    block->n_done = 0;
    block->whole = {CUDA_THREADS, 0, 0};
    for (int w = 0; w < N_WARPS; w++)
        block->warp[w] = {CUDA_WARP, 0, 0};
    for (int t = 0; t < CUDA_THREADS; t++)
        block->is_done[t] = false;
}

/* Each thread that is not done or asleep goes on to its next barrier. */
static void run_round(unsigned random, unsigned asleep) {
    unsigned first = random >> 16, step = random >> 8 | 1; /* odd: comes to every thread */
    block->n_moves = 0;
    for (unsigned k = 0; k < CUDA_THREADS; k++) {
        threadIdx.x = (first + k * step) % CUDA_THREADS;
        if (!block->is_done[threadIdx.x] && !(asleep >> threadIdx.x / CUDA_WARP & 1))
            resume(threadIdx.x);
    }
}

static void run_block(unsigned *random) {
    unsigned asleep = 0; /* warps, until the others can do no more without them */
    start_threads();
    while (block->n_done < CUDA_THREADS) {
        *random = *random * 1664525u + 1013904223u;
        run_round(*random, asleep);
        if (block->n_moves == 0 && !asleep) {
            fprintf(stderr, "threads of block %u wait at different barriers\n", blockIdx.x);
            abort();
        }
        if (block->n_moves == 0)
            asleep = 0;
        else if (!asleep)
            asleep = *random >> 10 & *random >> 20; /* each with a chance of a quarter */
    }
}

template <class Kernel> static void run_kernel(dim3 grid, const Kernel &kernel) {
    unsigned random = 1;
    block = (struct block *)calloc(1, sizeof *block);
    char *stacks = (char *)malloc((size_t)CUDA_THREADS * STACK_BYTES);
    if (!block || !stacks)
        abort();
    block->stacks = stacks;
    block->kernel = &kernel;
    block->body = [](const void *k) { (*(const Kernel *)k)(); };
    gridDim = grid;
    for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++) {
        for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
            run_block(&random);
    }
    free(stacks);
    free(block);
}

#define CUDA_LAUNCH(kernel, grid, ...) ((void)stream, run_kernel(grid, [&] { kernel(__VA_ARGS__); }))
#define cudaPeekAtLastError() cudaSuccess
#define cuda_launch_now launch_on_device
cudaError_t launch_on_device(cudaStream_t stream, const struct cuda_launch *launch);
#include "launch_device.cu"

extern "C" void fake_run_launch(const struct cuda_launch *launch) { (void)launch_on_device(NULL, launch); }

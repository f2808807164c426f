/* CUDA graphs: calls that come again are captured when they come for the second time, and from then on launched as one.
   The first time they run as they are, since libraries make and load things at a first call that a capture does not
   allow. What changes from step to step (learning rate, seeds, divisors) lies in device memory, uploaded before.

   A capture is of this thread alone: others, with devices of their own, may allocate meanwhile. Events stay outside,
   and what is captured is a chain in one stream. */
#include "cuda.h"

#include "base/log.h"

/* NULL: there is no place for another one. */
static struct cuda_graph *find(struct cuda_device *me, uint64_t key, bool *is_new) {
    *is_new = false;
    for (int i = 0; i < me->n_graphs; i++) {
        if (me->graphs[i].key == key)
            return &me->graphs[i];
    }
    if (me->n_graphs == CUDA_MAX_GRAPHS)
        return NULL;
    *is_new = true;
    me->graphs[me->n_graphs] = (struct cuda_graph){.key = key};
    return &me->graphs[me->n_graphs++];
}

static cvy_status instantiate(struct cuda_device *me, cudaGraph_t graph, cudaGraphExec_t *out) {
    /* it may want memory of the device, and then wait for it: for ever, if nobody looked before */
    CVY_TRY(cuda_wait(me, cuda_stream(me)));
    TRY_CUDA(me, cudaGraphInstantiate(out, graph, 0));
    return CVY_OK;
}

/* The stream has left the capture when this returns, whatever came of it. */
static cvy_status capture(struct cuda_device *me, cvy_status (*run)(const void *argument),
                          const void *argument, cudaGraphExec_t *out) {
    cudaGraph_t graph = NULL;
    TRY_CUDA(me, cudaStreamBeginCapture(cuda_stream(me), cudaStreamCaptureModeThreadLocal));
    cvy_status status = run(argument);
    cudaError_t code = cudaStreamEndCapture(cuda_stream(me), &graph);
    if (status == CVY_OK && code != cudaSuccess)
        status = cuda_failed(me->base.name, code, "cudaStreamEndCapture");
    if (status == CVY_OK)
        status = instantiate(me, graph, out);
    if (graph)
        (void)cudaGraphDestroy(graph);
    return status;
}

/* Kernel by kernel, now and from now on. If that fails too, its own error is the reason, not the capture's. */
static cvy_status do_without(struct cuda_device *me, cvy_status (*run)(const void *argument),
                             const void *argument) {
    struct cvy_error error;
    (void)cudaGetLastError(); /* it is remembered, and would be taken for a launch's */
    cvy_error_save(&error, CVY_ERR_FAILED);
    me->has_no_graphs = true;
    CVY_TRY(run(argument));
    (void)cvy_error_restore(&error);
    cvy_log(me->base.spec.log, CVY_LOG_WARNING, "no CUDA graphs, kernels are launched one by one: %s",
            cvy_error());
    return CVY_OK;
}

cvy_status cuda_repeat(struct cvy_device *device, uint64_t key, cvy_status (*run)(const void *argument),
                       const void *argument) {
    struct cuda_device *me = cuda_device(device);
    bool is_new;
    struct cuda_graph *known = me->has_no_graphs ? NULL : find(me, key, &is_new);
    if (!known || is_new)
        return run(argument);
    if (!known->graph && capture(me, run, argument, &known->graph) != CVY_OK)
        return me->is_lost ? CVY_ERR_LOST : do_without(me, run, argument);
    TRY_CUDA(me, cudaGraphLaunch(known->graph, cuda_stream(me)));
    return CVY_OK;
}

void cuda_forget(struct cvy_device *device) {
    struct cuda_device *me = cuda_device(device);
    if (me->n_graphs == 0 || !cuda_settle(me)) /* one may still run */
        return;
    for (int i = 0; i < me->n_graphs; i++) {
        if (me->graphs[i].graph)
            (void)cudaGraphExecDestroy(me->graphs[i].graph);
    }
    me->n_graphs = 0;
}

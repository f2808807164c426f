/* Events: a record remembers how far its stream has got, and a wait keeps another one until then. */
#include "gpu.h"

#include "base/mem.h"

#include <stdlib.h>

/* The link that leads to the event, or NULL and a complaint. */
static struct CUevent_st **find(struct fake_gpu *gpu, cudaEvent_t event) {
    for (struct CUevent_st **link = &gpu->events; *link; link = &(*link)->next) {
        if (*link == event)
            return link;
    }
    (void)fake_complain(cudaErrorInvalidResourceHandle, "%s: this is no event of it", gpu->name);
    return NULL;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
    struct fake_gpu *gpu;
    (void)flags;
    cudaError_t code = fake_enter("cudaEventCreateWithFlags", &gpu);
    if (code != cudaSuccess)
        return code;
    if (CVY_ALLOC(*out, 1) != CVY_OK)
        return fake_leave(gpu, fake_complain_status(cudaErrorMemoryAllocation));
    (*out)->next = gpu->events;
    gpu->events = *out;
    return fake_leave(gpu, cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    struct fake_gpu *gpu;
    cudaError_t code = fake_enter_anyway("cudaEventDestroy", &gpu);
    struct CUevent_st **link = find(gpu, event);
    if (!link)
        return fake_leave(gpu, cudaErrorInvalidResourceHandle);
    *link = event->next;
    free(event);
    return fake_leave(gpu, code);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    struct fake_gpu *gpu;
    cudaError_t code = fake_enter("cudaEventRecord", &gpu);
    if (code != cudaSuccess)
        return code;
    if (!find(gpu, event) || !fake_stream_of(gpu, stream))
        return fake_leave(gpu, cudaErrorInvalidResourceHandle);
    async_order_mark(&gpu->order, stream->number, &event->mark);
    event->stream = stream->number;
    event->until = stream->n_in;
    return fake_leave(gpu, cudaSuccess);
}

/* The newest record before this call counts; an event that was never recorded is over. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    struct fake_gpu *gpu;
    (void)flags;
    cudaError_t code = fake_enter("cudaStreamWaitEvent", &gpu);
    if (code != cudaSuccess)
        return code;
    if (!find(gpu, event) || !fake_stream_of(gpu, stream))
        return fake_leave(gpu, cudaErrorInvalidResourceHandle);
    async_order_follow(&gpu->order, stream->number, &event->mark);
    if (event->stream != stream->number)
        code = fake_push_wait(stream, event->stream, event->until);
    return fake_leave(gpu, code);
}

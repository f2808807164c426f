/* Events: a record remembers how far its stream has got, and a wait keeps another one until then, on whatever GPU. */
#include "gpu.h"

#include "base/mem.h"

#include <stdlib.h>

/* The link that leads to the event, or NULL and a complaint. */
static struct CUevent_st **find(cudaEvent_t event) {
    for (struct CUevent_st **link = &fake.events; *link; link = &(*link)->next) {
        if (*link == event)
            return link;
    }
    (void)fake_complain(cudaErrorInvalidResourceHandle, "this is no event");
    return NULL;
}

bool fake_is_event(cudaEvent_t event) { return find(event) != NULL; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
    (void)flags;
    cudaError_t code = fake_enter("cudaEventCreateWithFlags");
    if (code == cudaSuccess && CVY_ALLOC(*out, 1) != CVY_OK)
        code = fake_complain_status(cudaErrorMemoryAllocation);
    if (code != cudaSuccess)
        return fake_leave(code);
    (*out)->gpu = fake_present();
    (*out)->next = fake.events;
    fake.events = *out;
    return fake_leave(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    cudaError_t code = fake_enter("cudaEventDestroy");
    struct CUevent_st **link = find(event);
    if (!link)
        return fake_leave(cudaErrorInvalidResourceHandle);
    *link = event->next;
    free(event);
    return fake_leave(code);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    cudaError_t code = fake_enter_stream("cudaEventRecord", stream);
    if (code == cudaSuccess && !find(event))
        code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess && event->gpu != stream->gpu)
        code = fake_complain(cudaErrorInvalidResourceHandle, "an event of %s is recorded in %s",
                             event->gpu->name, stream->name);
    if (code != cudaSuccess)
        return fake_leave(code);
    if (fake_record_in_capture(event, stream))
        return fake_leave(cudaSuccess);
    async_order_mark(&fake.order, stream->number, &event->mark);
    event->stream = stream->number;
    event->until = stream->n_in;
    return fake_leave(cudaSuccess);
}

/* The newest record before this call counts; an event that was never recorded is over. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    (void)flags;
    cudaError_t code = fake_enter_stream("cudaStreamWaitEvent", stream);
    if (code == cudaSuccess && !find(event))
        code = cudaErrorInvalidResourceHandle;
    if (code != cudaSuccess)
        return fake_leave(code);
    if (fake_wait_in_capture(stream, event, &code))
        return fake_leave(code);
    async_order_follow(&fake.order, stream->number, &event->mark);
    if (event->stream != stream->number)
        code = fake_push_wait(stream, event->stream, event->until);
    return fake_leave(code);
}

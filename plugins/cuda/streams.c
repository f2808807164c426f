/* A GPU's streams and events, as rt/stream.h wants them. */
#include "cuda.h"

#include "base/thread.h"

#include <time.h>

cvy_status cuda_streams_open(struct cuda_device *me) {
    for (int s = 0; s < CUDA_N_STREAMS; s++) {
        TRY_CUDA(me, cudaStreamCreateWithFlags(&me->streams[s], cudaStreamNonBlocking));
        CVY_TRY(cuda_ring_open(me, &me->rings[s]));
    }
    for (int e = 0; e < CVY_N_EVENTS; e++)
        TRY_CUDA(me, cudaEventCreateWithFlags(&me->events[e], cudaEventDisableTiming));
    return CVY_OK;
}

void cuda_streams_close(struct cuda_device *me) {
    for (int e = 0; e < CVY_N_EVENTS; e++) {
        if (me->events[e])
            (void)cudaEventDestroy(me->events[e]);
    }
    for (int s = 0; s < CUDA_N_STREAMS; s++) {
        cuda_ring_close(&me->rings[s]);
        if (me->streams[s])
            (void)cudaStreamDestroy(me->streams[s]);
    }
}

static cvy_status begin(struct cvy_device *device, int stream, const struct cvy_instr *what, uint64_t step) {
    (void)what, (void)step;
    cuda_device(device)->stream = stream;
    return CVY_OK;
}

static cvy_status record(struct cvy_device *device, int event) {
    struct cuda_device *me = cuda_device(device);
    TRY_CUDA(me, cudaEventRecord(me->events[event], cuda_stream(me)));
    me->is_recorded |= UINT64_C(1) << event;
    return CVY_OK;
}

static cvy_status wait(struct cvy_device *device, int event) {
    struct cuda_device *me = cuda_device(device);
    if (!(me->is_recorded >> event & 1))
        return CVY_FAIL(CVY_ERR_FAILED, "%s: event %d is waited for, but was not recorded", device->name,
                        event);
    TRY_CUDA(me, cudaStreamWaitEvent(cuda_stream(me), me->events[event], 0));
    return CVY_OK;
}

/* ---- waiting with a deadline ------------------------------------------------------------------------------ */

/* cudaStreamSynchronize waits for ever, so: look, and nap for a little longer each time, up to 50 us. A device that was
   once too late is not waited for again: cudaErrorNotReady. Without an event it is the stream that is waited for. */
static cudaError_t wait_until_over(struct cuda_device *me, cudaStream_t stream, cudaEvent_t event,
                                   double *waited_s) {
    const int64_t start = cvy_now_ns();
    const double timeout_s = me->base.spec.timeout_s;
    *waited_s = 0;
    for (long nap_ns = 1000;; nap_ns = nap_ns < 50000 ? 2 * nap_ns : nap_ns) {
        cudaError_t code = me->is_lost ? cudaErrorNotReady
                           : event     ? cudaEventQuery(event)
                                       : cudaStreamQuery(stream);
        *waited_s = me->is_lost ? me->lost_after_s : (double)(cvy_now_ns() - start) * 1e-9;
        if (!me->is_lost && code == cudaErrorNotReady && timeout_s > 0 && *waited_s > timeout_s) {
            me->is_lost = true;
            me->lost_after_s = *waited_s;
        }
        if (code != cudaErrorNotReady || me->is_lost)
            return code;
        nanosleep(&(struct timespec){.tv_nsec = nap_ns}, NULL);
    }
}

static cvy_status wait_for(struct cuda_device *me, cudaStream_t stream, cudaEvent_t event) {
    double waited_s;
    cudaError_t code = wait_until_over(me, stream, event, &waited_s);
    if (code == cudaErrorNotReady)
        return CVY_FAIL(CVY_ERR_LOST,
                        "waited %.1f seconds for %s: it hangs, or is slower than --timeout allows", waited_s,
                        me->base.name);
    return code == cudaSuccess ? CVY_OK : cuda_failed(me->base.name, code, "what was enqueued");
}

cvy_status cuda_wait(struct cuda_device *me, cudaStream_t stream) { return wait_for(me, stream, NULL); }

cvy_status cuda_wait_event(struct cuda_device *me, cudaEvent_t event) { return wait_for(me, NULL, event); }

cvy_status cuda_wait_all(struct cuda_device *me) {
    for (int s = 0; s < CUDA_N_STREAMS; s++)
        CVY_TRY(cuda_wait(me, me->streams[s]));
    for (const struct cuda_posted *p = me->posted; p; p = p->next)
        CVY_TRY(cuda_wait(me, p->stream));
    return CVY_OK;
}

bool cuda_settle(struct cuda_device *me) {
    double waited_s;
    for (int s = 0; s < CUDA_N_STREAMS; s++) {
        if (me->streams[s])
            (void)wait_until_over(me, me->streams[s], NULL, &waited_s);
    }
    for (const struct cuda_posted *p = me->posted; p; p = p->next)
        (void)wait_until_over(me, p->stream, NULL, &waited_s);
    return !me->is_lost;
}

cvy_status cuda_check(struct cuda_device *me) {
    cudaError_t code = me->is_lost ? cudaErrorNotReady : cudaStreamQuery(cuda_stream(me));
    return code == cudaSuccess || code == cudaErrorNotReady
               ? CVY_OK
               : cuda_failed(me->base.name, code, "what was enqueued");
}

static cvy_status check(struct cvy_device *device) { return cuda_check(cuda_device(device)); }

/* Nothing is enqueued any more, or will ever be over. */
static void begin_anew(struct cuda_device *me) {
    me->is_recorded = 0;
    for (int s = 0; s < CUDA_N_STREAMS; s++)
        cuda_ring_clear(&me->rings[s]);
}

static cvy_status synchronize(struct cvy_device *device) {
    CVY_TRY(cuda_wait_all(cuda_device(device)));
    begin_anew(cuda_device(device));
    return CVY_OK;
}

static void abandon(struct cvy_device *device) {
    (void)cuda_settle(cuda_device(device));
    begin_anew(cuda_device(device));
}

/* ---- host functions ----------------------------------------------------------------------------------------- */

/* What the host reads passes to the arena's shadow, and what it writes back from it. cudaLaunchHostFunc would not do:
   all devices may share one thread for it, in which one would wait for another. */
static cvy_status copy_to_host(struct cuda_device *me, const struct cvy_host_call *call) {
    for (int i = 0; i < call->n_accesses; i++) {
        const struct cvy_access *a = &call->accesses[i];
        if (!a->n_bytes)
            continue;
        void *shadow = cuda_shadow_of(me, a->at);
        if (!shadow)
            return CVY_FAIL(CVY_ERR_FAILED, "%s: %s of %s lies in no arena", me->base.name, a->name,
                            call->name);
        CVY_TRY(cuda_fetch(me, shadow, a->at, a->n_bytes));
    }
    CVY_TRY(cuda_arrive(me));
    return cuda_wait(me,
                     cuda_stream(me)); /* it may have nothing to read, and yet come after what is enqueued */
}

static cvy_status call_host(struct cvy_device *device, const struct cvy_host_call *call) {
    struct cuda_device *me = cuda_device(device);
    CVY_TRY(copy_to_host(me, call));
    CVY_TRY(call->run((void *)call->argument));
    for (int i = 0; i < call->n_accesses; i++) {
        const struct cvy_access *a = &call->accesses[i];
        if (a->is_write && a->n_bytes)
            CVY_TRY(cuda_send(me, a->at, cuda_shadow_of(me, a->at), a->n_bytes));
    }
    return CVY_OK;
}

static void *host_address(struct cvy_device *device, void *at) {
    return cuda_shadow_of(cuda_device(device), at);
}

const struct cvy_streams cuda_streams = {
    .begin = begin,
    .record = record,
    .wait = wait,
    .call = call_host,
    .host_address = host_address,
    .repeat = cuda_repeat,
    .forget = cuda_forget,
    .check = check,
    .synchronize = synchronize,
    .abandon = abandon,
};

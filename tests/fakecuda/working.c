/* What is enqueued runs when somebody waits or asks, whoever it is: always the head of a stream whose waits are over,
   of any GPU, in an order that a seed decides. */
#include "gpu.h"

#include "base/thread.h"

enum { ASKED = 128 }; /* items that run, at most, when somebody only asks */

static bool is_stalled(struct fake_item *item) {
    if (item->stall_s <= 0)
        return false;
    int64_t now = cvy_now_ns();
    if (item->stalled_until_ns == 0)
        item->stalled_until_ns = now + (int64_t)(item->stall_s * 1e9);
    return now < item->stalled_until_ns;
}

/* Can the stream's head run? A wait that is over is taken off on the way. */
static bool is_ready(struct CUstream_st *q, bool *took_off) {
    struct fake_item *item;
    while ((item = fake_head(q)) && !item->run) {
        if (fake.streams[item->wait_stream].n_done < item->wait_until)
            return false;
        fake_pop(q);
        *took_off = true;
    }
    return item && (!item->is_ready || item->is_ready(item->payload)) && !is_stalled(item);
}

static int pick(void) {
    bool ready[FAKE_MAX_STREAMS], took_off;
    do { /* a wait taken off one stream may free another */
        took_off = false;
        for (int s = 0; s < FAKE_MAX_STREAMS; s++)
            ready[s] = is_ready(&fake.streams[s], &took_off);
    } while (took_off);
    int n = 0; /* streams, up to the last one that is ready */
    for (int s = 0; s < FAKE_MAX_STREAMS; s++)
        n = ready[s] ? s + 1 : n;
    return async_pick(&fake.picker, ready, n);
}

/* The stream is empty; NULL: all of the GPU are. */
static bool is_over(const struct fake_gpu *gpu, const struct CUstream_st *stream) {
    for (int s = 0; s < FAKE_MAX_STREAMS; s++) {
        const struct CUstream_st *q = &fake.streams[s];
        if ((stream ? q == stream : q->gpu == gpu) && fake_head(q))
            return false;
    }
    return true;
}

static void run_head(struct CUstream_st *q) {
    struct fake_item *item = fake_head(q);
    if (item->fails) {
        (void)fake_complain(cudaErrorLaunchFailure, "%s: %s (%s) fails, as FAKECUDA_FAIL orders",
                            q->gpu->name, item->what.op, q->name);
        (void)fake_break(q->gpu, cudaErrorLaunchFailure);
    } else if (!fake_open_blocks(item)) {
        (void)fake_break(q->gpu, cudaErrorIllegalAddress);
    } else if (item->is_intact && !item->is_intact(item->payload)) {
        (void)fake_complain(cudaErrorIllegalAddress,
                            "%s: pinned memory was touched before %s (%s) was over with it", q->gpu->name,
                            item->what.op, q->name);
        (void)fake_break(q->gpu, cudaErrorIllegalAddress);
    } else {
        item->run(item->payload);
        if (!item->go_on || item->go_on(item->payload))
            fake_pop(q);
    }
}

/* Runs at most n_most items, until it is over. False when nothing can go on: a stall. */
static bool work(const struct fake_gpu *gpu, const struct CUstream_st *stream, uint32_t n_most) {
    bool goes_on = true;
    for (uint32_t n = 0; n < n_most && goes_on && !is_over(gpu, stream); n++) {
        int s = pick();
        goes_on = s >= 0;
        if (goes_on)
            run_head(&fake.streams[s]);
    }
    fake_shut_blocks();
    return goes_on || is_over(gpu, stream);
}

void fake_work_what_goes(const struct CUstream_st *stream) { (void)work(stream->gpu, stream, UINT32_MAX); }

/* This thread knows that it is empty. When all streams are, and each was waited for since its last item, a step is
   over: the threads tell each other so, and begin the next one with nothing behind them. */
static void host_has_waited(struct CUstream_st *stream) {
    bool is_settled = true;
    async_order_one_host(&fake.order, stream->number, fake_waited_for());
    stream->n_waited = stream->n_in;
    for (int s = 0; s < FAKE_MAX_STREAMS; s++)
        is_settled &= fake.streams[s].n_waited == fake.streams[s].n_in;
    if (is_settled)
        async_order_settle(&fake.order);
}

cudaError_t fake_work_until_over(const struct fake_gpu *gpu, struct CUstream_st *stream) {
    while (!work(gpu, stream, UINT32_MAX))
        fake_nap();
    cudaError_t code = fake_failure(gpu);
    if (code == cudaSuccess && stream)
        host_has_waited(stream);
    return code;
}

/* ---- the calls ----------------------------------------------------------------------------------------------- */

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    cudaError_t code = fake_enter_stream("cudaStreamSynchronize", stream);
    if (code == cudaSuccess)
        code = fake_refuse_in_capture("cudaStreamSynchronize", stream);
    if (code == cudaSuccess)
        code = fake_work_until_over(stream->gpu, stream);
    return fake_leave(code);
}

static uint32_t a_few(void) { return 1 + cvy_rng_below(&fake.picker.rng, ASKED); }

/* Some of what is enqueued happens meanwhile: nothing would otherwise. */
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    cudaError_t code = fake_enter_stream("cudaStreamQuery", stream);
    if (code == cudaSuccess)
        code = fake_refuse_in_capture("cudaStreamQuery", stream);
    if (code != cudaSuccess)
        return fake_leave(code);
    (void)work(stream->gpu, stream, a_few());
    code = fake_failure(stream->gpu);
    if (code == cudaSuccess && !is_over(stream->gpu, stream))
        code = cudaErrorNotReady;
    if (code == cudaSuccess)
        host_has_waited(stream);
    return fake_leave(code);
}

/* The same for what was in its stream when the event was recorded. */
cudaError_t cudaEventQuery(cudaEvent_t event) {
    cudaError_t code = fake_lock();
    if (code == cudaSuccess && !fake_is_event(event))
        code = cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess)
        code = fake_refuse_in_capture("cudaEventQuery", NULL);
    if (code == cudaSuccess && event->is_captured)
        code = fake_complain(cudaErrorCapturedEvent, "what a capture recorded never happens");
    if (code == cudaSuccess)
        code = fake_meet_failure("cudaEventQuery", event->gpu);
    if (code != cudaSuccess)
        return fake_leave(code);
    const struct CUstream_st *stream = &fake.streams[event->stream];
    if (stream->n_done < event->until)
        (void)work(stream->gpu, stream, a_few());
    code = fake_failure(event->gpu);
    if (code == cudaSuccess && stream->n_done < event->until)
        code = cudaErrorNotReady;
    if (code == cudaSuccess)
        async_order_one_host_mark(&fake.order, &event->mark, fake_waited_for());
    return fake_leave(code);
}

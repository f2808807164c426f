/* Graphs: what is enqueued into a stream that captures is kept, with its arguments as they are, and ordered by nothing
   but its stream and the events of the capture. Two nodes that touch the same memory, one of them writing, must be
   ordered. A launch enqueues all nodes, in a random order that their edges allow. */
#include "gpu.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct node {
    const char *name;
    void (*run)(void *payload);
    void *payload;
    size_t payload_bytes;
    struct cuda_range *ranges;
    int n_ranges;
    int stream;               /* its number; the node is number before.at[stream] + 1 in it */
    struct fake_steps before; /* nodes that come before it */
};

struct CUgraph_st {
    int n_owners; /* the graph itself, and what was made of it */
    struct CUstream_st *origin;
    struct fake_steps n; /* nodes of each stream */
    bool is_invalid;
    CVY_VEC(struct node) nodes;
};

struct CUgraphExec_st {
    struct CUgraph_st *graph;
};

static _Thread_local struct CUgraph_st *mine; /* that this thread captures now */

static void release(struct CUgraph_st *graph) {
    if (--graph->n_owners > 0)
        return;
    for (size_t k = 0; k < graph->nodes.n; k++) {
        free(graph->nodes.data[k].payload);
        free(graph->nodes.data[k].ranges);
    }
    cvy_vec_free(&graph->nodes);
    free(graph);
}

/* ---- capturing ----------------------------------------------------------------------------------------------- */

cudaError_t fake_refuse_in_capture(const char *name, struct CUstream_st *stream) {
    struct CUgraph_st *capture = stream ? stream->capture : mine;
    if (!capture)
        return cudaSuccess;
    capture->is_invalid = true;
    return fake_complain(cudaErrorStreamCaptureUnsupported, "%s is not allowed while a stream captures",
                         name);
}

cudaError_t fake_capture(struct CUstream_st *stream, const char *name, const struct cuda_range *ranges,
                         int n_ranges, void (*run)(void *payload), size_t payload_bytes, void **payload) {
    struct CUgraph_st *graph = stream->capture;
    struct node node = {.name = name,
                        .run = run,
                        .payload_bytes = payload_bytes,
                        .n_ranges = n_ranges,
                        .stream = stream->number,
                        .before = stream->captured};
    if (graph->is_invalid)
        return fake_complain(cudaErrorStreamCaptureInvalidated, "%s: the capture has failed already", name);
    if (cvy_alloc_items(1, payload_bytes + 1, &node.payload) != CVY_OK ||
        CVY_ALLOC(node.ranges, (size_t)n_ranges + 1) != CVY_OK ||
        cvy_vec_push(&graph->nodes, node) != CVY_OK) {
        free(node.payload);
        free(node.ranges);
        return fake_complain_status(cudaErrorMemoryAllocation);
    }
    if (n_ranges > 0)
        memcpy(node.ranges, ranges, (size_t)n_ranges * sizeof *ranges);
    stream->captured.at[stream->number] = ++graph->n.at[stream->number];
    *payload = node.payload;
    return cudaSuccess;
}

bool fake_record_in_capture(struct CUevent_st *event, struct CUstream_st *stream) {
    event->is_captured = stream->capture != NULL;
    event->capture = stream->capture;
    event->steps = stream->captured;
    return event->is_captured;
}

static cudaError_t join(struct CUstream_st *stream, const struct CUevent_st *event) {
    if (!event->is_captured || (stream->capture && event->capture != stream->capture)) {
        stream->capture->is_invalid = true;
        return fake_complain(cudaErrorStreamCaptureIsolation,
                             "%s captures, and waits for an event that is no part of it", stream->name);
    }
    if (!event->capture)
        return fake_complain(cudaErrorCapturedEvent, "%s waits for an event that was part of a capture",
                             stream->name);
    if (!stream->capture)
        stream->captured = (struct fake_steps){{0}};
    stream->capture = event->capture;
    for (int s = 0; s < FAKE_MAX_STREAMS; s++) {
        if (stream->captured.at[s] < event->steps.at[s])
            stream->captured.at[s] = event->steps.at[s];
    }
    return cudaSuccess;
}

bool fake_wait_in_capture(struct CUstream_st *stream, const struct CUevent_st *event, cudaError_t *code) {
    if (!stream->capture && !event->is_captured)
        return false;
    *code = join(stream, event);
    return true;
}

/* All streams and events leave it. */
static void leave(const struct CUgraph_st *graph) {
    for (int s = 0; s < FAKE_MAX_STREAMS; s++) {
        if (fake.streams[s].capture == graph)
            fake.streams[s].capture = NULL;
    }
    for (struct CUevent_st *event = fake.events; event; event = event->next) {
        if (event->capture == graph)
            event->capture = NULL;
    }
    mine = mine == graph ? NULL : mine;
}

void fake_drop_capture(struct CUstream_st *stream) {
    struct CUgraph_st *graph = stream->capture;
    if (graph && graph->origin == stream) {
        leave(graph);
        release(graph);
    } else if (graph) {
        graph->is_invalid = true;
        stream->capture = NULL;
    }
}

/* ---- is it sound? -------------------------------------------------------------------------------------------- */

static bool is_before(const struct node *a, const struct node *b) {
    return b->before.at[a->stream] > a->before.at[a->stream];
}

static bool overlap(const struct cuda_range *a, const struct cuda_range *b) {
    const char *a_at = a->at, *b_at = b->at;
    return (a->is_write || b->is_write) && a_at < b_at + b->n_bytes && b_at < a_at + a->n_bytes;
}

static bool conflict(const struct node *a, const struct node *b) {
    for (int i = 0; i < a->n_ranges; i++) {
        for (int k = 0; k < b->n_ranges; k++) {
            if (overlap(&a->ranges[i], &b->ranges[k]))
                return true;
        }
    }
    return false;
}

static cudaError_t check(const struct CUgraph_st *graph) {
    for (size_t k = 0; k < graph->nodes.n; k++) {
        for (size_t i = 0; i < k; i++) {
            const struct node *a = &graph->nodes.data[i], *b = &graph->nodes.data[k];
            if (!is_before(a, b) && !is_before(b, a) && conflict(a, b))
                return fake_complain(cudaErrorUnknown, "no event orders %s after %s within a graph", b->name,
                                     a->name);
        }
    }
    return cudaSuccess;
}

static cudaError_t finish(const struct CUgraph_st *graph) {
    if (graph->is_invalid)
        return fake_complain(cudaErrorStreamCaptureInvalidated,
                             "something was called that a capture does not allow");
    if (memcmp(&graph->n, &graph->origin->captured, sizeof graph->n) != 0)
        return fake_complain(cudaErrorStreamCaptureUnjoined,
                             "%s does not wait for all streams that it captured", graph->origin->name);
    return check(graph);
}

/* ---- the calls ----------------------------------------------------------------------------------------------- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    cudaError_t code = fake_enter_stream("cudaStreamBeginCapture", stream);
    if (code == cudaSuccess && mode != cudaStreamCaptureModeThreadLocal)
        code = fake_complain(cudaErrorInvalidValue, "the stand-in captures for one thread alone");
    if (code == cudaSuccess && (mine || stream->capture))
        code = fake_complain(cudaErrorIllegalState, "%s or this thread captures already", stream->name);
    if (code == cudaSuccess && CVY_ALLOC(mine, 1) != CVY_OK)
        code = fake_complain_status(cudaErrorMemoryAllocation);
    if (code != cudaSuccess)
        return fake_leave(code);
    *mine = (struct CUgraph_st){.n_owners = 1, .origin = stream};
    stream->capture = mine;
    stream->captured = (struct fake_steps){{0}};
    return fake_leave(cudaSuccess);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out) {
    cudaError_t code = fake_enter_stream("cudaStreamEndCapture", stream);
    struct CUgraph_st *graph = mine;
    *out = NULL;
    if (!graph || graph->origin != stream)
        return fake_leave(fake_complain(cudaErrorIllegalState, "this thread began no capture in the stream"));
    if (code == cudaSuccess)
        code = finish(graph);
    leave(graph);
    if (code == cudaSuccess)
        *out = graph;
    else
        release(graph);
    return fake_leave(code);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
    cudaError_t code = fake_enter("cudaGraphInstantiate");
    *out = NULL;
    if (code == cudaSuccess)
        code = fake_refuse_in_capture("cudaGraphInstantiate", NULL);
    if (code == cudaSuccess && flags != 0)
        code = fake_complain(cudaErrorInvalidValue, "the stand-in knows no flags of cudaGraphInstantiate");
    if (code == cudaSuccess && CVY_ALLOC(*out, 1) != CVY_OK)
        code = fake_complain_status(cudaErrorMemoryAllocation);
    if (code == cudaSuccess) {
        (*out)->graph = graph;
        graph->n_owners++;
    }
    return fake_leave(code);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    (void)fake_lock();
    release(graph);
    return fake_leave(cudaSuccess);
}

/* What was launched goes on. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    (void)fake_lock();
    release(exec->graph);
    free(exec);
    return fake_leave(cudaSuccess);
}

/* The first node of the stream from its n-th on that can go on: all that comes before it is done. */
static const struct node *next_of(const struct CUgraph_st *graph, int stream, const struct fake_steps *done) {
    for (size_t k = 0; k < graph->nodes.n; k++) {
        const struct node *node = &graph->nodes.data[k];
        if (node->stream != stream || node->before.at[stream] != done->at[stream])
            continue;
        for (int s = 0; s < FAKE_MAX_STREAMS; s++) {
            if (node->before.at[s] > done->at[s])
                return NULL;
        }
        return node;
    }
    return NULL;
}

static const struct node *pick(const struct CUgraph_st *graph, const struct fake_steps *done) {
    const struct node *next[FAKE_MAX_STREAMS];
    bool is_ready[FAKE_MAX_STREAMS];
    struct async_picker picker = {.rng = fake.picker.rng};
    for (int s = 0; s < FAKE_MAX_STREAMS; s++)
        is_ready[s] = graph->n.at[s] > done->at[s] && (next[s] = next_of(graph, s, done));
    int s = async_pick(&picker, is_ready, FAKE_MAX_STREAMS);
    fake.picker.rng = picker.rng;
    return next[s];
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    const struct CUgraph_st *graph = exec->graph;
    struct fake_steps done = {{0}};
    cudaError_t code = fake_enter_stream("cudaGraphLaunch", stream);
    if (code == cudaSuccess)
        code = fake_refuse_in_capture("cudaGraphLaunch", stream); /* CUDA would make it a part of the other */
    for (size_t k = 0; k < graph->nodes.n && code == cudaSuccess; k++) {
        const struct node *node = pick(graph, &done);
        void *payload;
        code = fake_push(stream, node->name, node->ranges, node->n_ranges, node->run, node->payload_bytes,
                         &payload);
        if (code == cudaSuccess)
            memcpy(payload, node->payload, node->payload_bytes);
        done.at[node->stream]++;
    }
    return fake_leave(code);
}

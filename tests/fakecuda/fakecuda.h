/* A stand-in for the CUDA calls that the plugin makes, for machines without a GPU. Everything that a call puts into a
   stream goes through fake_enqueue, which says what memory it touches.

   - Streams are queues, worked off when somebody waits or asks, in an order that the events allow and FAKECUDA_SEED
     decides (a number, by default 0).
   - Every GPU has memory of its own, which others reach after cudaDeviceEnablePeerAccess alone (FAKECUDA_PEERS=0:
     never) and the host never: it is shut but while something runs that says it touches it. What is freed never comes
   back. - Every access is held against those before it: streams, events and the host's waits must order it with all
     that it conflicts with, whatever happened to run first (src/backends/async/order.h).
   - FAKECUDA_FAIL="device=1,op=cudaMalloc,n=3": the third such call on GPU 1 fails; op is a CUDA call, or the name of
     something enqueued ("copy", "relu"), which then fails when it runs. FAKECUDA_STALL="device=1,op=relu,seconds=2": it
     takes so long; without seconds, for ever. What is left out means any.
   - FAKECUDA_DEVICES: how many GPUs, by default 8.
   - FAKECUDA_MEMORY: bytes that cudaMalloc gives on each GPU, by default 16 GiB.
   - FAKECUDA_PRODUCTS=0: cuDNN and cuBLASLt have no algorithm for any convolution or product.
   The variables are read at the first call, and again after all streams, events and memory were given back. */
#ifndef FAKECUDA_H
#define FAKECUDA_H

#include "launch.h"

/* Puts run(payload) into the stream; the payload is copied. `name`, a constant, and the ranges are for the checks. */
cudaError_t fake_enqueue(cudaStream_t stream, const char *name, const struct cuda_range *ranges, int n_ranges,
                         void (*run)(void *payload), const void *payload, size_t payload_bytes);

bool fake_has_products(void); /* FAKECUDA_PRODUCTS */

/* Runs a launch now. One of two: the loops of launch_host.c, or the threads of launch_simt.cc. */
#ifdef __cplusplus
extern "C"
#endif
    void
    fake_run_launch(const struct cuda_launch *launch);

/* For calls of other libraries: does FAKECUDA_FAIL order this one ("cudnnCreate") to fail now? */
bool fake_call_fails(const char *name);
/* What went wrong in the newest call of this thread that failed here; `otherwise` when nothing did. */
const char *fake_reason(const char *otherwise);

#endif

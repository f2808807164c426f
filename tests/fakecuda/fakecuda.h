/* A stand-in for the CUDA calls that the plugin makes, for machines without a GPU. Everything that a call puts into a
   stream goes through fake_enqueue, which says what memory it touches. */
#ifndef FAKECUDA_H
#define FAKECUDA_H

#include "launch.h"

/* Puts run(payload) into the stream; the payload is copied. `name`, a constant, and the ranges are for the checks. */
cudaError_t fake_enqueue(cudaStream_t stream, const char *name, const struct cuda_range *ranges, int n_ranges,
                         void (*run)(void *payload), const void *payload, size_t payload_bytes);

#endif

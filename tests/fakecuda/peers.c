/* Peer access between the pretend GPUs: all of them have it. */
#include "fakecuda.h"

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    *can = device != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    (void)peer, (void)flags;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) { return cudaSuccess; }

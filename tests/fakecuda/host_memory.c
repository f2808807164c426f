/* Pinned memory of the host, which GPUs read and write while the host goes on. */
#include "gpu.h"

#include <stdlib.h>

bool fake_is_pinned(const void *at, size_t n_bytes) {
    for (size_t i = 0; i < fake.pinned.n; i++) {
        const struct fake_pinned *p = &fake.pinned.data[i];
        if ((const char *)at >= p->at && (const char *)at + n_bytes <= p->at + p->n_bytes)
            return true;
    }
    return false;
}

cudaError_t cudaHostAlloc(void **out, size_t n_bytes, unsigned flags) {
    (void)flags;
    *out = NULL;
    cudaError_t code = fake_enter("cudaHostAlloc");
    if (code == cudaSuccess)
        code = fake_refuse_in_capture("cudaHostAlloc", NULL);
    if (code != cudaSuccess || n_bytes == 0)
        return fake_leave(code);
    struct fake_pinned pinned = {malloc(n_bytes), n_bytes};
    if (!pinned.at || cvy_vec_push(&fake.pinned, pinned) != CVY_OK) {
        free(pinned.at);
        return fake_leave(fake_complain(cudaErrorMemoryAllocation, "no memory"));
    }
    *out = pinned.at;
    return fake_leave(cudaSuccess);
}

/* Waits for all that the present GPU has to do; a broken one gives the memory back too, and says what is wrong. */
cudaError_t cudaFreeHost(void *memory) {
    if (!memory)
        return cudaSuccess;
    cudaError_t code = fake_enter("cudaFreeHost");
    size_t i = 0;
    if (fake_refuse_in_capture("cudaFreeHost", NULL) != cudaSuccess)
        return fake_leave(cudaErrorStreamCaptureUnsupported);
    while (i < fake.pinned.n && fake.pinned.data[i].at != memory)
        i++;
    if (i == fake.pinned.n)
        return fake_leave(
            fake_complain(cudaErrorInvalidValue, "cudaFreeHost of %p, which is not pinned", memory));
    cudaError_t worked = fake_work_until_over(fake_present(), NULL);
    fake.pinned.data[i] = fake.pinned.data[--fake.pinned.n];
    free(memory);
    return fake_leave(code != cudaSuccess ? code : worked);
}

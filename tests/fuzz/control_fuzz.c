/* Any bytes as messages of the control connection: refused, or messages that encode to the same bytes. */
#include "comm/control_wire.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    struct cvy_control_message message;
    unsigned char again[CVY_CONTROL_FRAME];
    ssize_t n;
    while (n_bytes > 0 && (n = cvy_control_decode(bytes, n_bytes, &message)) > 0) {
        assert((size_t)n <= n_bytes);
        assert(cvy_control_encode(&message, again) == (size_t)n);
        assert(memcmp(again, bytes, (size_t)n) == 0);
        bytes += n;
        n_bytes -= (size_t)n;
    }
    assert(n_bytes == 0 || n < 0 || n_bytes < CVY_CONTROL_FRAME);
    return 0;
}

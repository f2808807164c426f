/* The transport `threads` through the suite for all transports, and the table. */
#include "comm/transport_conformance.h"

int main(void) {
    const struct cvy_transport *threads = cvy_transport_find("threads");
    if (!threads || cvy_transport_find("smoke signals"))
        return 1;
    _Alignas(64) unsigned char shared[SHARED_BYTES];
    struct suite suite = {.transport = threads, .shared = shared};
    return transport_conformance(&suite);
}

/* The table of transports. */
#include "rt/comm.h"

#include <string.h>

#define CVY_TRANSPORT(name) extern const struct cvy_transport cvy_transport_##name;
#include "comm/transports.def"
#undef CVY_TRANSPORT

#define CVY_TRANSPORT(name) &cvy_transport_##name,
static const struct cvy_transport *const table[] = {
#include "comm/transports.def"
};
#undef CVY_TRANSPORT

const struct cvy_transport *cvy_transport_find(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    }
    return NULL;
}

const struct cvy_transport *cvy_transport_launched(void) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i]->is_launched && table[i]->is_launched())
            return table[i];
    }
    return NULL;
}

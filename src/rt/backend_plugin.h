/* A backend in a library of its own, for what not every machine has. It is built from the same sources as the program:
   it has its own copies of the layers below this one, and shares with the program the structs of these headers and the
   newest error of each thread. */
#ifndef CVY_RT_BACKEND_PLUGIN_H
#define CVY_RT_BACKEND_PLUGIN_H

#include "rt/backend.h"

/* CVY_BACKEND_ABI, from the build, is a hash of the headers that both sides read. */
#define CVY_BACKEND_PLUGIN_SYMBOL \
    "cvy_backend_plugin" /* const struct cvy_backend_plugin cvy_backend_plugin */

struct cvy_backend_plugin {
    size_t abi_bytes; /* sizeof this */
    const char *abi;  /* CVY_BACKEND_ABI */
    const struct cvy_backend *backend;
    void (*share_errors)(cvy_error_source *of_thread); /* cvy_error_share of the plugin's copy */
};

#endif

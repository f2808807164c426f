/* Finding a backend by its name, in the table or in a plugin, and a kernel for a call.
   Invariant: a device without a kernel of its own still runs the call through the operator's reference, as
   long as the host can read its memory. */
#include "rt/backend.h"
#include "rt/backend_plugin.h"
#include "rt/fallback.h"
#include "rt/plugin.h"

#include <string.h>

const struct cvy_backend *cvy_backend_find(const char *name) {
    size_t n;
    const struct cvy_backend *const *table = cvy_backend_table(&n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    }
    return NULL;
}

size_t cvy_backend_names(const char **names, size_t cap) {
    size_t n_built_in, n_plugins, n = 0;
    const struct cvy_backend *const *table = cvy_backend_table(&n_built_in);
    const struct cvy_plugin_name *plugins = cvy_backend_plugins(&n_plugins);
    for (size_t i = 0; i < n_built_in && n < cap; i++)
        names[n++] = table[i]->name;
    for (size_t i = 0; i < n_plugins && n < cap; i++)
        names[n++] = plugins[i].name;
    return n;
}

static cvy_status load_plugin(const struct cvy_plugin_name *plugin, const struct cvy_backend **out) {
    const void *symbol;
    CVY_TRY(cvy_plugin_load(plugin->name, CVY_BACKEND_PLUGIN_SYMBOL, plugin->hint, &symbol));
    const struct cvy_backend_plugin *found = symbol;
    if (found->abi_bytes != sizeof *found || strcmp(found->abi, CVY_BACKEND_ABI) != 0)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED,
                        "libconvoy_%s.so belongs to another version of Convoy: build both together",
                        plugin->name);
    found->share_errors(cvy_error_source_here());
    if (found->backend->available)
        CVY_TRY(found->backend->available());
    *out = found->backend;
    return CVY_OK;
}

cvy_status cvy_backend_load(const char *name, const struct cvy_backend **out) {
    size_t n;
    *out = cvy_backend_find(name);
    if (*out)
        return CVY_OK;
    const struct cvy_plugin_name *plugins = cvy_backend_plugins(&n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(plugins[i].name, name) == 0)
            return load_plugin(&plugins[i], out);
    }
    return CVY_FAIL(CVY_ERR_USAGE, "no backend '%s' here; `convoy devices` lists what there is", name);
}

cvy_status cvy_device_synchronize(struct cvy_device *device) {
    return device->backend->streams ? device->backend->streams->synchronize(device) : CVY_OK;
}

const struct cvy_kernel_impl *const *cvy_backend_kernels(const struct cvy_backend *backend) {
    static const struct cvy_kernel_impl *const none[] = {NULL};
    if (backend && backend->kernels_of)
        backend = cvy_backend_find(backend->kernels_of);
    return backend && backend->kernels ? backend->kernels : none;
}

const struct cvy_kernel_impl *cvy_kernel_select(const struct cvy_device *device, const struct cvy_call *call,
                                                bool *is_fallback) {
    if (device->backend->select)
        return device->backend->select(device, call, is_fallback);
    const struct cvy_kernel_impl *const *kernel = device->backend->kernels;
    for (; kernel && *kernel; kernel++) {
        if (strcmp((*kernel)->op, call->op->name) != 0)
            continue;
        if ((*kernel)->supports && !(*kernel)->supports(device, call))
            continue;
        if (is_fallback)
            *is_fallback = false;
        return *kernel;
    }
    if (is_fallback)
        *is_fallback = true;
    return device->backend->is_host_memory && call->op->reference ? &cvy_fallback_kernel : NULL;
}

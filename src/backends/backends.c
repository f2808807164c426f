/* The table of backends, made from backends.def. */
#include "rt/backend.h"

#define CVY_BACKEND(name) extern const struct cvy_backend cvy_backend_##name;
#define CVY_BACKEND_PLUGIN(name, hint)
#include "backends/backends.def"
#undef CVY_BACKEND

static const struct cvy_backend *const table[] = {
#define CVY_BACKEND(name) &cvy_backend_##name,
#include "backends/backends.def"
#undef CVY_BACKEND
#undef CVY_BACKEND_PLUGIN
};

static const struct cvy_plugin_name plugins[] = {
#define CVY_BACKEND(name)
#define CVY_BACKEND_PLUGIN(name, hint) {#name, hint},
#include "backends/backends.def"
};

const struct cvy_backend *const *cvy_backend_table(size_t *n) {
    *n = sizeof table / sizeof *table;
    return table;
}

const struct cvy_plugin_name *cvy_backend_plugins(size_t *n) {
    *n = sizeof plugins / sizeof *plugins;
    return plugins;
}

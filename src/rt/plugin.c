/* Where plugins lie, and loading them. CVY_PLUGIN_FOLDER, the build's, is the folder of installed plugins as seen from
   that of libconvoy.so; CVY_PLUGIN_FOLDER_BIN as seen from that of the program. */
#include "rt/plugin.h"

#include "base/text.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct search {
    const char *name;
    struct cvy_text tried; /* "DIR, DIR" */
    struct cvy_text found; /* the file */
};

/* Is it in `folder`/`below`? */
static bool look_in(struct search *search, const char *folder, size_t n, const char *below) {
    struct cvy_text *found = &search->found;
    found->n = 0;
    cvy_text_append(found, folder, n);
    cvy_text_printf(found, "%s", below);
    if (!found->data)
        return false;
    cvy_text_printf(&search->tried, "%s%s", search->tried.n ? ", " : "", found->data);
    cvy_text_printf(found, "/libconvoy_%s.so", search->name);
    return access(found->data, R_OK) == 0;
}

static bool look_around(struct search *search, const char *file) {
    static const char *const below[] = {"", CVY_PLUGIN_FOLDER, CVY_PLUGIN_FOLDER_BIN};
    const char *slash = strrchr(file, '/');
    for (size_t i = 0; slash && i < sizeof below / sizeof *below; i++) {
        if (look_in(search, file, (size_t)(slash - file), below[i]))
            return true;
    }
    return false;
}

static bool find(struct search *search) {
    const char *folders = getenv("CONVOY_PLUGINS");
    if (folders) {
        for (size_t n; *folders; folders += n + (folders[n] == ':')) {
            n = strcspn(folders, ":");
            if (n > 0 && look_in(search, folders, n, ""))
                return true;
        }
        return false;
    }
    char file[PATH_MAX] = "";
    ssize_t n = readlink("/proc/self/exe", file, sizeof file - 1);
    if (n > 0) {
        file[n] = '\0';
        if (look_around(search, file))
            return true;
    }
    static const char here;
    char library[PATH_MAX];
    Dl_info info; /* where this code lies: libconvoy.so, or the program again */
    return dladdr(&here, &info) && strchr(info.dli_fname, '/') && realpath(info.dli_fname, library) &&
           strcmp(library, file) != 0 && look_around(search, library);
}

static cvy_status load(const struct search *search, const char *symbol, const char *hint, const void **out) {
    void *handle = dlopen(search->found.data, RTLD_NOW | RTLD_LOCAL);
    const void *address = handle ? dlsym(handle, symbol) : NULL;
    if (!address)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "cannot load %s: %s; %s", search->found.data, dlerror(), hint);
    *out = address;
    return CVY_OK;
}

cvy_status cvy_plugin_load(const char *name, const char *symbol, const char *hint, const void **out) {
    struct search search = {.name = name};
    cvy_status status;
    if (find(&search))
        status = load(&search, symbol, hint, out);
    else
        status = CVY_FAIL(CVY_ERR_UNSUPPORTED, "there is no libconvoy_%s.so in %s; %s", name,
                          search.tried.n ? search.tried.data : "CONVOY_PLUGINS, which is empty", hint);
    cvy_text_free(&search.tried);
    cvy_text_free(&search.found);
    return status;
}

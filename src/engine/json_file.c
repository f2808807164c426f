/* See json_file.h. */
#include "engine/json_file.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

cvy_status cvy_write_json(const char *path, json_t *root, size_t flags) {
    char *text = root ? json_dumps(root, flags) : NULL;
    json_decref(root);
    if (!text)
        return CVY_FAIL(CVY_ERR_MEMORY, "%s: no memory to write it", path);
    cvy_status status = cvy_write_file(path, text, strlen(text));
    free(text);
    return status;
}

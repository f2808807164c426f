/* Files of JSON. */
#ifndef CVY_ENGINE_JSON_FILE_H
#define CVY_ENGINE_JSON_FILE_H

#include "base/status.h"

#include <jansson.h>

/* Writes `root` to `path`, whole or not at all; flags: jansson's JSON_INDENT and its like. Takes `root`, also on
   failure; NULL is what jansson gives when memory is short: CVY_ERR_MEMORY. Local. */
cvy_status cvy_write_json(const char *path, json_t *root, size_t flags);

#endif

/* manifest.json of a checkpoint: size and xxh3 of its files. It is written last, so a folder with one was written to
   its end; and whoever reads it knows whether the files are still as they were then.

   {"version": 1, "files": {"model.safetensors": {"bytes": 247000, "xxh3": "0123456789abcdef"}, …}} */
#ifndef CVY_ENGINE_MANIFEST_H
#define CVY_ENGINE_MANIFEST_H

#include "base/status.h"

#include <stdbool.h>

#define CVY_MANIFEST "manifest.json"

/* Of those of the n files that are there. Whole or not at all. Local. */
cvy_status cvy_manifest_write(const char *folder, const char *const *names, size_t n);

/* Are the files as the manifest says: all of them, or `only` one? *is_there: there is a manifest at all; without one
   there is nothing to compare, which is CVY_OK. CVY_ERR_DATA names the first file that is missing or not the same, or
   the manifest. Local. */
cvy_status cvy_manifest_verify(const char *folder, const char *only, bool *is_there);

#endif

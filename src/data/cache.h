/* Files that save a second scan of a data set. They are never needed: one that is missing, broken or of another
   version counts as absent, and one that cannot be written is left out. */
#ifndef CVY_DATA_CACHE_H
#define CVY_DATA_CACHE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* $XDG_CACHE_HOME/convoy/HASH.index, else ~/.cache/convoy/HASH.index, HASH being that of subject's full path. *out is
   the caller's; NULL when there is no such folder. */
cvy_status cvy_cache_path(const char *subject, char **out);

/* The content of a cache file of this kind, at most max_bytes, which the caller frees. False: there is none. */
bool cvy_cache_load(const char *path, const char kind[8], size_t max_bytes, char **out, size_t *n_bytes);
/* Of one that is in memory: where its content begins and how long it is. False: it is broken. */
bool cvy_cache_parse(const char *file, size_t n_file, const char kind[8], const char **out, size_t *n_bytes);

/* Writes it whole, with the folders of cvy_cache_path if they are missing. False: it could not. */
bool cvy_cache_store(const char *path, const char kind[8], const void *bytes, size_t n_bytes);

#endif

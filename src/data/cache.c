/* A cache file is a header and its content: KIND (8 bytes, with a version), the xxh3 of the content, the content. */
#include "data/cache.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

enum { N_KIND = 8, N_HEADER = 16 };

cvy_status cvy_cache_path(const char *subject, char **out) {
    const char *home = getenv("XDG_CACHE_HOME"), *below = "";
    struct cvy_text text = {0};
    *out = NULL;
    if (!home || home[0] != '/') { /* the standard wants full paths, and others to be passed over */
        home = getenv("HOME");
        below = "/.cache";
    }
    char *full = realpath(subject, NULL);
    if (full && home && home[0] == '/')
        cvy_text_printf(&text, "%s%s/convoy/%016llx.index", home, below,
                        (unsigned long long)XXH3_64bits(full, strlen(full)));
    free(full);
    if (text.n == 0 && text.status == CVY_OK)
        return CVY_OK;
    return cvy_text_take(&text, out);
}

bool cvy_cache_parse(const char *file, size_t n_file, const char kind[8], const char **out, size_t *n_bytes) {
    uint64_t hash;
    if (n_file < N_HEADER || memcmp(file, kind, N_KIND) != 0)
        return false;
    memcpy(&hash, file + N_KIND, sizeof hash);
    *out = file + N_HEADER;
    *n_bytes = n_file - N_HEADER;
    return XXH3_64bits(*out, *n_bytes) == hash;
}

bool cvy_cache_load(const char *path, const char kind[8], size_t max_bytes, char **out, size_t *n_bytes) {
    char *file;
    const char *content;
    size_t n_file;
    if (cvy_read_file(path, max_bytes, &file, &n_file) != CVY_OK)
        return false;
    bool is_good = cvy_cache_parse(file, n_file, kind, &content, n_bytes);
    if (is_good) {
        memmove(file, content, *n_bytes + 1); /* with the zero behind it */
        *out = file;
    } else {
        free(file);
    }
    return is_good;
}

bool cvy_cache_store(const char *path, const char kind[8], const void *bytes, size_t n_bytes) {
    uint64_t hash = XXH3_64bits(bytes, n_bytes);
    struct cvy_writer writer = {0};
    bool is_whole =
        cvy_make_folders_above(path) == CVY_OK && cvy_writer_begin_shared(&writer, path) == CVY_OK &&
        cvy_writer_append(&writer, kind, N_KIND) == CVY_OK &&
        cvy_writer_append(&writer, &hash, sizeof hash) == CVY_OK &&
        cvy_writer_append(&writer, bytes, n_bytes) == CVY_OK && cvy_writer_commit(&writer) == CVY_OK;
    cvy_writer_abandon(&writer);
    return is_whole;
}

/* See manifest.h. Files are read in pieces, never mapped: one that is shortened meanwhile is an error, not a signal. */
#include "engine/manifest.h"

#include "base/file.h"
#include "base/mem.h"
#include "engine/json_file.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { VERSION = 1, PIECE = 1 << 20, MAX_MANIFEST_BYTES = 1 << 20, HASH_TEXT = 17 };

static cvy_status hash_pieces(int fd, const char *path, size_t n_bytes, char out[HASH_TEXT]) {
    XXH3_state_t *state = XXH3_createState();
    char *piece = NULL;
    cvy_status status = state ? CVY_ALLOC(piece, PIECE) : CVY_FAIL(CVY_ERR_MEMORY, "%s: out of memory", path);
    if (status == CVY_OK)
        XXH3_64bits_reset(state);
    for (size_t done = 0; done < n_bytes && status == CVY_OK;) {
        size_t n = n_bytes - done < PIECE ? n_bytes - done : PIECE;
        status = cvy_read_at(fd, path, (int64_t)done, piece, n);
        if (status == CVY_OK)
            XXH3_64bits_update(state, piece, n);
        done += n;
    }
    if (status == CVY_OK)
        snprintf(out, HASH_TEXT, "%016" PRIx64, (uint64_t)XXH3_64bits_digest(state));
    XXH3_freeState(state);
    free(piece);
    return status;
}

static cvy_status hash_file(const char *path, size_t *n_bytes, char out[HASH_TEXT]) {
    int fd;
    CVY_TRY(cvy_open_file(path, &fd, n_bytes));
    cvy_status status = hash_pieces(fd, path, *n_bytes, out);
    close(fd);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------------------- */

static cvy_status add_file(json_t *files, const char *folder, const char *name) {
    char *path, hash[HASH_TEXT];
    size_t n_bytes;
    CVY_TRY(cvy_path(folder, name, "", &path));
    cvy_status status = CVY_OK;
    if (access(path, F_OK) == 0) {
        status = hash_file(path, &n_bytes, hash);
        if (status == CVY_OK &&
            json_object_set_new(files, name,
                                json_pack("{s:I, s:s}", "bytes", (json_int_t)n_bytes, "xxh3", hash)) != 0)
            status = CVY_FAIL(CVY_ERR_MEMORY, "%s: no memory for the manifest", path);
    }
    free(path);
    return status;
}

cvy_status cvy_manifest_write(const char *folder, const char *const *names, size_t n) {
    json_t *files = json_object(), *root = json_pack("{s:i, s:O}", "version", VERSION, "files", files);
    char *path = NULL;
    cvy_status status;
    CVY_TRY_OUT(cvy_path(folder, CVY_MANIFEST, "", &path));
    for (size_t i = 0; i < n; i++)
        CVY_TRY_OUT(add_file(files, folder, names[i]));
    status = cvy_write_json(path, root, JSON_INDENT(2));
    root = NULL;
out:
    json_decref(files);
    json_decref(root);
    free(path);
    return status;
}

/* ---- reading -------------------------------------------------------------------------------------------- */

static cvy_status verify_file(const char *folder, const char *name, json_t *line) {
    char *path, hash[HASH_TEXT];
    const char *want;
    json_int_t n_want;
    size_t n_bytes;
    int fd;
    if (strchr(name, '/') || json_unpack(line, "{s:I, s:s}", "bytes", &n_want, "xxh3", &want) != 0)
        return CVY_FAIL(CVY_ERR_DATA, "%s/" CVY_MANIFEST ": its line of %.40s is not as a checkpoint has it",
                        folder, name);
    CVY_TRY(cvy_path(folder, name, "", &path));
    cvy_status status = cvy_open_file(path, &fd, &n_bytes);
    if (status == CVY_OK) {
        if ((json_int_t)n_bytes != n_want)
            status = CVY_FAIL(CVY_ERR_DATA, "%s: is damaged: it has %zu bytes, %lld were written", path,
                              n_bytes, (long long)n_want);
        else
            status = hash_pieces(fd, path, n_bytes, hash);
        if (status == CVY_OK && strcmp(hash, want) != 0)
            status =
                CVY_FAIL(CVY_ERR_DATA, "%s: is damaged: its xxh3 is %s, %.16s was written", path, hash, want);
        close(fd);
    }
    free(path);
    return status;
}

static cvy_status verify_all(const char *folder, const char *path, const char *only, json_t *root) {
    json_t *files = json_object_get(root, "files"), *line;
    const char *name;
    if (json_integer_value(json_object_get(root, "version")) > VERSION)
        return CVY_FAIL(CVY_ERR_DATA, "%s: is of a newer version of Convoy", path);
    if (json_object_size(files) == 0)
        return CVY_FAIL(CVY_ERR_DATA, "%s: names no files; it must be as a checkpoint writes it", path);
    if (only && !json_object_get(files, only))
        return CVY_FAIL(CVY_ERR_DATA, "%s: does not name %s, which was not of this checkpoint", path, only);
    json_object_foreach(files, name, line) {
        if (!only || strcmp(name, only) == 0)
            CVY_TRY(verify_file(folder, name, line));
    }
    return CVY_OK;
}

cvy_status cvy_manifest_verify(const char *folder, const char *only, bool *is_there) {
    char *path, *text = NULL;
    size_t n;
    json_t *root = NULL;
    json_error_t error;
    cvy_status status = CVY_OK;
    *is_there = false;
    CVY_TRY(cvy_path(folder, CVY_MANIFEST, "", &path));
    if (access(path, F_OK) != 0)
        goto out;
    *is_there = true;
    CVY_TRY_OUT(cvy_read_file(path, MAX_MANIFEST_BYTES, &text, &n));
    root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    status = root ? verify_all(folder, path, only, root)
                  : CVY_FAIL(CVY_ERR_DATA, "%s: line %d: %s", path, error.line, error.text);
out:
    json_decref(root);
    free(text);
    free(path);
    return status;
}

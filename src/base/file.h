/* Whole files: read into memory, written so that they are whole or absent. */
#ifndef CVY_BASE_FILE_H
#define CVY_BASE_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* "DIR/NAMESUFFIX"; the caller frees *out. */
cvy_status cvy_path(const char *dir, const char *name, const char *suffix, char **out);

/* What was renamed, made or removed in the folder is on the disk when this returns, where the file system can say so;
   without effect where it cannot. */
cvy_status cvy_sync_folder(const char *path);

/* Makes a folder with those above it, unless they are there; or only those above. */
cvy_status cvy_make_folder(const char *path);
cvy_status cvy_make_folders_above(const char *path);

/* The path from the root on, without links; what is not there yet stays as it is written. The caller frees *out. */
cvy_status cvy_real_path(const char *path, char **out);

/* Do both names lead to one file or folder that is there? */
bool cvy_is_same_file(const char *a, const char *b);

/* Opens a regular file to read; the caller closes *out. Folders, devices and FIFOs are CVY_ERR_DATA, without a wait,
   and so is what is not there or may not be read: a fault of the name. CVY_ERR_IO is one of the machine. */
cvy_status cvy_open_file(const char *path, int *out, size_t *n_bytes);

/* Maps a whole regular file, to read; the caller unmaps it (munmap). CVY_ERR_DATA when it is empty. */
cvy_status cvy_map_file(const char *path, void **out, size_t *n_bytes);

/* Reads n_bytes at `offset` of an open file; threads may share it. `path` is for the error. */
cvy_status cvy_read_at(int fd, const char *path, int64_t offset, void *into, size_t n_bytes);

/* The same into new memory; *out is NUL-terminated, freed by the caller. */
cvy_status cvy_read_piece(int fd, const char *path, int64_t offset, size_t n_bytes, char **out);

/* Reads a whole file; *out is NUL-terminated, freed by the caller. Refuses files above max_bytes. */
cvy_status cvy_read_file(const char *path, size_t max_bytes, char **out, size_t *n_bytes);

/* Writes to "path.tmp", fsyncs and renames: the file is whole or absent, also when the disk is full.
   What is there already and is not a regular file (a folder, /dev/null) is never replaced: CVY_ERR_IO. */
cvy_status cvy_write_file(const char *path, const void *bytes, size_t n_bytes);

/* One write at the end of an open file: all of it is there, or, when that fails (the disk is full), nothing of it.
   `path` is for the error. */
cvy_status cvy_append_whole(int fd, const char *path, const void *bytes, size_t n_bytes);

/* The same as cvy_write_file in pieces: begin, append as often as needed, then commit. Append, close and commit that
   fail remove the temporary file and release everything; cvy_writer_abandon does so without an error, and accepts a
   writer that is zero-initialised, committed, failed or abandoned already. */
struct cvy_writer {
    int fd_plus_1; /* 0: closed, so that zero-initialised is closed */
    char *path;
    char *tmp; /* the temporary file; NULL: there is none */
};
cvy_status cvy_writer_begin(struct cvy_writer *writer, const char *path);
/* For a path that several processes may write at once: the temporary file is "path.RANDOM.tmp", each has its own. */
cvy_status cvy_writer_begin_shared(struct cvy_writer *writer, const char *path);
cvy_status cvy_writer_append(struct cvy_writer *writer, const void *bytes, size_t n_bytes);
/* All is on the disk, nothing more can be appended, and the file takes no descriptor until it is committed: for many
   files that appear together. */
cvy_status cvy_writer_close(struct cvy_writer *writer);
cvy_status cvy_writer_commit(struct cvy_writer *writer);
void cvy_writer_abandon(struct cvy_writer *writer);

#endif

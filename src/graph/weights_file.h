/* A file of weights in any format that is known: named tensors, read without trust. The formats are listed in
   weights_formats.def: to add one, write its file with a `struct cvy_weights_format`, and its line there. Everything
   here is Local. */
#ifndef CVY_GRAPH_WEIGHTS_FILE_H
#define CVY_GRAPH_WEIGHTS_FILE_H

#include "graph/shape.h"

/* One format. `file` is what its open made. */
struct cvy_weights_format {
    const char *name;
    bool (*is_it)(const unsigned char *bytes, size_t n_bytes); /* by its first bytes */
    /* The bytes outlive the file. Messages name `path`. */
    cvy_status (*open)(const void *bytes, size_t n_bytes, const char *path, void **out);
    size_t (*count)(const void *file);
    const char *(*name_at)(const void *file, size_t i); /* i < count, in strcmp order */
    cvy_status (*find)(void *file, const char *name, struct cvy_desc *desc, const void **bytes);
    const char *(*metadata)(const void *file, const char *key); /* NULL: the format has none */
    void (*free)(void *file);
};

struct cvy_weights_file;

/* Maps the file, which must not be shortened while it is open, and checks what it says about its tensors.
   CVY_ERR_DATA names file, tensor and reason. */
cvy_status cvy_weights_file_open(const char *path, struct cvy_weights_file **out);
/* The same over bytes that outlive it; `name` stands for the path in messages. */
cvy_status cvy_weights_file_open_memory(const void *bytes, size_t n_bytes, const char *name,
                                        struct cvy_weights_file **out);
void cvy_weights_file_free(struct cvy_weights_file *file);

/* Names are without "module." and "_orig_mod.", where all begin so: wrappers of PyTorch put that before them. */
size_t cvy_weights_file_count(const struct cvy_weights_file *file);
const char *cvy_weights_file_name(const struct cvy_weights_file *file, size_t i); /* in strcmp order */
bool cvy_weights_file_has(const struct cvy_weights_file *file, const char *name);
/* A tensor: its description and its bytes, row-major, at any address, valid until free. CVY_ERR_DATA when it is
   missing or cannot be read. */
cvy_status cvy_weights_file_find(struct cvy_weights_file *file, const char *name, struct cvy_desc *desc,
                                 const void **bytes);
/* What the file says about itself under this key, or NULL. */
const char *cvy_weights_file_metadata(const struct cvy_weights_file *file, const char *key);

#endif

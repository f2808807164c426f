/* Safetensors files: named tensors that anybody can read without running code. Reading trusts nothing;
   writing gives a whole file or none.

   The format: 8 bytes n, little-endian; n bytes of JSON {"name": {"dtype": "F32", "shape": [2, 3],
   "data_offsets": [begin, end]}, …, "__metadata__": {"key": "value", …}}; then the tensors' bytes, which
   the offsets cover without gap or overlap. Everything here is Local. */
#ifndef CVY_GRAPH_SAFETENSORS_H
#define CVY_GRAPH_SAFETENSORS_H

#include "graph/shape.h"

/* ---- reading ----------------------------------------------------------------------------------------- */

struct cvy_safetensors;

/* Maps the file and checks all of its header. CVY_ERR_DATA names file, tensor and reason. The file must not
   be shortened while it is open; replacing it by a new one, as our writer does, is harmless. */
cvy_status cvy_safetensors_open(const char *path, struct cvy_safetensors **out);
/* The same over bytes that outlive it; `name` stands for the path in messages. */
cvy_status cvy_safetensors_open_memory(const void *bytes, size_t n_bytes, const char *name,
                                       struct cvy_safetensors **out);
void cvy_safetensors_free(struct cvy_safetensors *file);

/* The tensors' names in strcmp order, i < count. */
size_t cvy_safetensors_count(const struct cvy_safetensors *file);
const char *cvy_safetensors_name(const struct cvy_safetensors *file, size_t i);
bool cvy_safetensors_has(const struct cvy_safetensors *file, const char *name);

/* A tensor: its description and its bytes, row-major, valid until free. They lie at any address: copy with
   memcpy. CVY_ERR_DATA when it is missing, or of a type or rank that Convoy does not know. */
cvy_status cvy_safetensors_find(const struct cvy_safetensors *file, const char *name, struct cvy_desc *desc,
                                const void **bytes);

/* The value of a key of `__metadata__`, or NULL. */
const char *cvy_safetensors_metadata(const struct cvy_safetensors *file, const char *key);

/* ---- writing ----------------------------------------------------------------------------------------- */

struct cvy_safetensor {
    const char *name;
    struct cvy_desc desc;
    const void *bytes; /* row-major */
};
struct cvy_safetensors_pair {
    const char *key, *value;
};

/* Writes "path.tmp", then renames it. Tensors lie in the given order, those of longer elements first: so
   every tensor is aligned, which PyTorch's reader needs. CVY_ERR_USAGE: a name is taken twice or not UTF-8;
   CVY_ERR_IO: the disk is full, … */
cvy_status cvy_safetensors_write(const char *path, const struct cvy_safetensor *tensors, size_t n,
                                 const struct cvy_safetensors_pair *metadata, size_t n_metadata);

/* "F32" for CVY_F32. */
const char *cvy_safetensors_dtype(cvy_dtype dtype);

#endif

/* The tensors of a state dict that PyTorch pickled, wherever its storages lie. Local. */
#ifndef CVY_GRAPH_STATE_DICT_H
#define CVY_GRAPH_STATE_DICT_H

#include "graph/pickle.h"
#include "graph/shape.h"

/* Where the elements of a storage lie: CVY_ERR_DATA when there is none of this key. */
typedef cvy_status cvy_storage_source(const void *context, const char *key, size_t n_key,
                                      const unsigned char **bytes, uint64_t *n_bytes);

struct cvy_state_dict {
    struct cvy_state_entry *entries; /* by name */
    size_t n;
    uint64_t gather_left; /* bytes that may still be copied because a tensor is not row-major */
    struct cvy_pool pool;
};

/* The globals that the pickle of a state dict may have. */
extern const char *const cvy_state_dict_names[];

/* Takes the tensors out of a pickle that was read with these names: of a dict of tensors, or of one with such a dict
   under "state_dict" or "model". Neither it nor the storages are copied: all outlive *out, which cvy_state_dict_free
   releases, also after a failure. Errors do not name the file. */
cvy_status cvy_state_dict_read(const struct cvy_pickle *pickle, cvy_storage_source *source,
                               const void *context, struct cvy_state_dict *out);
void cvy_state_dict_free(struct cvy_state_dict *dict);

const char *cvy_state_dict_name(const struct cvy_state_dict *dict, size_t i);
cvy_status cvy_state_dict_find(struct cvy_state_dict *dict, const char *name, struct cvy_desc *desc,
                               const void **bytes);

#endif

/* An index from names to numbers: a hash table with open addressing, at most half full. It only grows, as a
   graph does. Names are borrowed: they must outlive the index. Zero-initialised is empty. */
#ifndef CVY_GRAPH_NAMES_H
#define CVY_GRAPH_NAMES_H

#include "base/status.h"

#include <stdint.h>

struct cvy_names {
    struct cvy_name_slot {
        const char *name; /* NULL: free */
        int32_t number;
    } * slots;
    size_t n, cap; /* cap is a power of 2, or 0 */
};

/* The number of a name, or -1. */
int32_t cvy_names_find(const struct cvy_names *names, const char *name);
/* `name` must not be there yet. */
cvy_status cvy_names_add(struct cvy_names *names, const char *name, int32_t number);
void cvy_names_free(struct cvy_names *names);

#endif

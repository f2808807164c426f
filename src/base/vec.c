/* Growth of arrays: doubling, so that n pushes cost O(n). */
#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

cvy_status cvy_vec_reserve(void **data, size_t n, size_t *cap, size_t n_more, size_t size) {
    if (n_more <= *cap - n)
        return CVY_OK;
    size_t most = SIZE_MAX / size;
    if (n_more > most - n)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for %zu more items of %zu bytes", n_more,
                        size);
    size_t grown = *cap > most / 2 ? most : *cap * 2;
    if (grown < n + n_more)
        grown = n + n_more;
    if (grown < 8 && most >= 8)
        grown = 8;
    void *items; /* by memcpy: *data is really another kind of pointer */
    memcpy(&items, data, sizeof items);
    items = realloc(items, grown * size);
    if (!items)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for %zu items of %zu bytes", grown, size);
    memcpy(data, &items, sizeof items);
    *cap = grown;
    return CVY_OK;
}

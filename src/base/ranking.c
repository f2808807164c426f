/* See ranking.h. */
#include "base/ranking.h"

#include <string.h>

void cvy_rank(void *items, size_t size, int *n, int most, const void *item,
              int (*compare)(const void *, const void *)) {
    char *first = items;
    int at = *n;
    while (at > 0 && compare(item, first + (size_t)(at - 1) * size) < 0)
        at--;
    if (at == most)
        return;
    *n += *n < most;
    char *place = first + (size_t)at * size;
    memmove(place + size, place, (size_t)(*n - 1 - at) * size);
    memcpy(place, item, size);
}

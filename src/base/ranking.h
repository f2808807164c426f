/* The first few of many, in order, kept as they come. */
#ifndef CVY_BASE_RANKING_H
#define CVY_BASE_RANKING_H

#include <stddef.h>

/* `items`: room for `most` items of `size` bytes, *n of them in order. Puts the new one in its place, behind its
   equals; what is then beyond `most` is forgotten. `compare` is as qsort has it: below 0, the first stands before the
   second. */
void cvy_rank(void *items, size_t size, int *n, int most, const void *item,
              int (*compare)(const void *, const void *));

#endif

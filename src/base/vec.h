/* A growing array of any type: declare with CVY_VEC(T), zero-initialise, push, free. */
#ifndef CVY_BASE_VEC_H
#define CVY_BASE_VEC_H

#include "base/status.h"

#define CVY_VEC(T)  \
    struct {        \
        T *data;    \
        size_t n;   \
        size_t cap; \
    }

/* Makes room for n_more items of `size` bytes; *data may move. */
cvy_status cvy_vec_reserve(void **data, size_t n, size_t *cap, size_t n_more, size_t size);

#define cvy_vec_grow(v, n_more) \
    cvy_vec_reserve((void **)&(v)->data, (v)->n, &(v)->cap, (n_more), sizeof *(v)->data)

/* Appends one item; evaluates to a cvy_status. */
#define cvy_vec_push(v, ...) \
    (cvy_vec_grow((v), 1) == CVY_OK ? ((v)->data[(v)->n++] = (__VA_ARGS__), CVY_OK) : CVY_ERR_MEMORY)

#define cvy_vec_free(v)        \
    do {                       \
        free((v)->data);       \
        (v)->data = NULL;      \
        (v)->n = (v)->cap = 0; \
    } while (0)

#endif

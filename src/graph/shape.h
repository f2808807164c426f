/* Element types, shapes and tensor descriptions. */
#ifndef CVY_GRAPH_SHAPE_H
#define CVY_GRAPH_SHAPE_H

#include "base/status.h"
#include "base/text.h"

enum { CVY_MAX_DIMS = 6 };

struct cvy_shape {
    int n;                     /* rank, 0 to CVY_MAX_DIMS */
    int64_t dim[CVY_MAX_DIMS]; /* each >= 0; unused ones are 0: compare with cvy_shape_equal */
};

struct cvy_desc {
    cvy_dtype dtype;
    struct cvy_shape shape;
};

#define CVY_SHAPE(...) \
    ((struct cvy_shape){.n = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dim = {__VA_ARGS__}})

/* Stands for an optional operand that is not given: the zeroed description, f32 without dimensions. Scalars of
   a graph are therefore f32[1]. */
#define CVY_DESC_ABSENT ((struct cvy_desc){0})
static inline bool cvy_desc_is_absent(const struct cvy_desc *desc) {
    return desc->dtype == CVY_F32 && desc->shape.n == 0;
}

size_t cvy_dtype_size(cvy_dtype dtype);      /* bytes */
const char *cvy_dtype_name(cvy_dtype dtype); /* "f32", … */
bool cvy_dtype_parse(const char *name, cvy_dtype *out);

bool cvy_shape_equal(const struct cvy_shape *a, const struct cvy_shape *b);
bool cvy_desc_equal(const struct cvy_desc *a, const struct cvy_desc *b);
int64_t cvy_shape_count(const struct cvy_shape *shape); /* elements; the caller knows it fits (see check) */
/* CVY_ERR_DATA when a dimension is negative or the number of bytes overflows int64. */
cvy_status cvy_desc_check(const struct cvy_desc *desc);
size_t cvy_desc_bytes(const struct cvy_desc *desc);
/* "f32[32,3,8,8]"; "-" is CVY_DESC_ABSENT. Parsing takes the whole text and checks the result. */
void cvy_desc_print(struct cvy_text *out, const struct cvy_desc *desc);
cvy_status cvy_desc_parse(const char *text, struct cvy_desc *out);

#endif

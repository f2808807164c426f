/* Element types, shapes and tensor descriptions: sizes, comparison, and the text form "f32[32,3,8,8]".
   Sizes come from files too, so cvy_desc_check guards every product before anybody multiplies. */
#include "graph/shape.h"

#include <string.h>

static const struct {
    const char *name;
    size_t n_bytes;
} dtypes[] = {
    [CVY_F32] = {"f32", 4}, [CVY_F64] = {"f64", 8}, [CVY_BF16] = {"bf16", 2}, [CVY_F16] = {"f16", 2},
    [CVY_I32] = {"i32", 4}, [CVY_I64] = {"i64", 8}, [CVY_U8] = {"u8", 1},
};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

size_t cvy_dtype_size(cvy_dtype dtype) { return dtypes[dtype].n_bytes; }

const char *cvy_dtype_name(cvy_dtype dtype) { return dtypes[dtype].name; }

bool cvy_dtype_parse(const char *name, cvy_dtype *out) {
    for (int i = 0; i < N_DTYPES; i++) {
        if (strcmp(name, dtypes[i].name) == 0) {
            *out = (cvy_dtype)i;
            return true;
        }
    }
    return false;
}

bool cvy_shape_equal(const struct cvy_shape *a, const struct cvy_shape *b) {
    return a->n == b->n && memcmp(a->dim, b->dim, sizeof a->dim) == 0; /* the struct as a whole has padding */
}

bool cvy_desc_equal(const struct cvy_desc *a, const struct cvy_desc *b) {
    return a->dtype == b->dtype && cvy_shape_equal(&a->shape, &b->shape);
}

int64_t cvy_shape_count(const struct cvy_shape *shape) {
    int64_t count = 1;
    for (int i = 0; i < shape->n; i++)
        count *= shape->dim[i];
    return count;
}

size_t cvy_desc_bytes(const struct cvy_desc *desc) {
    return (size_t)cvy_shape_count(&desc->shape) * cvy_dtype_size(desc->dtype);
}

cvy_status cvy_desc_check(const struct cvy_desc *desc) {
    const struct cvy_shape *shape = &desc->shape;
    if ((unsigned)desc->dtype >= N_DTYPES)
        return CVY_FAIL(CVY_ERR_DATA, "element type %d does not exist", (int)desc->dtype);
    if (shape->n < 0 || shape->n > CVY_MAX_DIMS)
        return CVY_FAIL(CVY_ERR_DATA, "a shape has 0 to %d dimensions, not %d", CVY_MAX_DIMS, shape->n);
    int64_t n_bytes = (int64_t)cvy_dtype_size(desc->dtype);
    for (int i = 0; i < shape->n; i++) {
        if (shape->dim[i] < 0)
            return CVY_FAIL(CVY_ERR_DATA, "dimension %d of a shape is negative: %lld", i,
                            (long long)shape->dim[i]);
        /* a zero does not excuse the other dimensions: [0,huge,huge] would overflow on the way */
        if (__builtin_mul_overflow(n_bytes, shape->dim[i] > 1 ? shape->dim[i] : 1, &n_bytes))
            return CVY_FAIL(CVY_ERR_DATA, "a shape is too large: its size in bytes overflows at dimension %d",
                            i);
    }
    return CVY_OK;
}

void cvy_desc_print(struct cvy_text *out, const struct cvy_desc *desc) {
    cvy_text_printf(out, "%s[", cvy_dtype_name(desc->dtype));
    for (int i = 0; i < desc->shape.n; i++)
        cvy_text_printf(out, "%s%lld", i ? "," : "", (long long)desc->shape.dim[i]);
    cvy_text_printf(out, "]");
}

/* "32,3,8,8]" to the end of the text. False: not of that form, or too many dimensions. */
static bool parse_dims(const char *at, struct cvy_shape *shape) {
    if (strcmp(at, "]") == 0)
        return true;
    while (shape->n < CVY_MAX_DIMS) {
        size_t length = strcspn(at, ",]");
        char number[24];
        if (at[length] == '\0' || length >= sizeof number)
            return false;
        memcpy(number, at, length);
        number[length] = '\0';
        if (!cvy_parse_i64(number, &shape->dim[shape->n++]))
            return false;
        at += length + 1;
        if (at[-1] == ']')
            return *at == '\0';
    }
    return false;
}

cvy_status cvy_desc_parse(const char *text, struct cvy_desc *out) {
    if (strcmp(text, "-") == 0) {
        *out = CVY_DESC_ABSENT;
        return CVY_OK;
    }
    struct cvy_desc desc = {0};
    char type[8] = "";
    size_t length = strcspn(text, "[");
    if (text[length] == '[' && length < sizeof type)
        memcpy(type, text, length);
    if (!cvy_dtype_parse(type, &desc.dtype) || !parse_dims(text + length + 1, &desc.shape))
        return CVY_FAIL(CVY_ERR_DATA, "\"%.60s\" is no tensor description; one looks like f32[32,3,8,8]",
                        text);
    CVY_TRY(cvy_desc_check(&desc));
    *out = desc;
    return CVY_OK;
}

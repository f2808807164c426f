/* A layout is a value: format tag and groups, packed into the bits of the pointer that stands for it, which nobody
   follows. So equal layouts are equal pointers in every device, and there is nothing to own, to lock or to free. */
#include "backends/cpu/layout.h"

#include <oneapi/dnnl/dnnl_debug.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_BITS = 16, MAX_GROUPS = 0x7FFFFFFF };
_Static_assert(sizeof(uintptr_t) >= 8, "a pointer holds tag and groups");
_Static_assert(dnnl_format_tag_last < 1 << TAG_BITS, "a tag fits its bits");

/* groups: 1, or N of gN: */
static const struct cvy_layout *pack(dnnl_format_tag_t tag, int64_t groups) {
    return (const struct cvy_layout *)((uintptr_t)groups << TAG_BITS | (uintptr_t)tag);
}

static dnnl_format_tag_t tag_of(const struct cvy_layout *layout) {
    return (dnnl_format_tag_t)((uintptr_t)layout & ((1 << TAG_BITS) - 1));
}

int64_t cpu_layout_groups(const struct cvy_layout *layout) {
    return layout ? (int64_t)((uintptr_t)layout >> TAG_BITS) : 1;
}

/* ---- names --------------------------------------------------------------------------------------- */

static bool find_tag(const char *name, dnnl_format_tag_t *out) {
    for (int tag = dnnl_a; tag < (int)dnnl_format_tag_last; tag++) {
        if (strcmp(dnnl_fmt_tag2str((dnnl_format_tag_t)tag), name) == 0) {
            *out = (dnnl_format_tag_t)tag;
            return true;
        }
    }
    return false;
}

/* The format tag of a descriptor without padding of its own or offsets. Dimensions of size 1 leave a choice, since
   equal descriptors may differ in their strides; but oneDNN's kernels compare strides, and what they do not know
   runs in plain loops, a thousand times slower. So of the tags that fit, the first with the very same strides. */
static bool tag_of_md(const dnnl_memory_desc_t *md, dnnl_format_tag_t *out) {
    const dnnl_dim_t *strides = md->format_desc.blocking.strides;
    bool found = false;
    for (int tag = dnnl_a; tag < (int)dnnl_format_tag_last; tag++) {
        dnnl_memory_desc_t candidate;
        if (dnnl_memory_desc_init_by_tag(&candidate, md->ndims, md->dims, md->data_type,
                                         (dnnl_format_tag_t)tag) != dnnl_success ||
            !dnnl_memory_desc_equal(&candidate, md))
            continue;
        bool is_same =
            memcmp(candidate.format_desc.blocking.strides, strides, (size_t)md->ndims * sizeof *strides) == 0;
        if (is_same || !found)
            *out = (dnnl_format_tag_t)tag;
        found = true;
        if (is_same)
            return true;
    }
    return found;
}

/* "plain", "TAG" or "gN:TAG" */
static bool parse(const char *name, const struct cvy_layout **out) {
    dnnl_format_tag_t tag;
    long long groups = 1;
    *out = NULL;
    if (strcmp(name, "plain") == 0)
        return true;
    if (name[0] == 'g') {
        char *end;
        groups = strtoll(name + 1, &end, 10);
        if (*end != ':' || groups < 2 || groups > MAX_GROUPS)
            return false;
        name = end + 1;
    }
    if (!find_tag(name, &tag))
        return false;
    *out = pack(tag, groups);
    return true;
}

/* ---- descriptors --------------------------------------------------------------------------------- */

bool cpu_dtype(cvy_dtype dtype, dnnl_data_type_t *out) {
    static const dnnl_data_type_t types[] = {
        [CVY_F32] = dnnl_f32, [CVY_F64] = dnnl_data_type_undef, [CVY_BF16] = dnnl_bf16, [CVY_F16] = dnnl_f16,
        [CVY_I32] = dnnl_s32, [CVY_I64] = dnnl_data_type_undef, [CVY_U8] = dnnl_u8,
    };
    *out = types[dtype];
    return *out != dnnl_data_type_undef;
}

struct cvy_desc cpu_desc_of_weights(const struct cvy_desc *matrix) {
    return (struct cvy_desc){matrix->dtype, CVY_SHAPE(matrix->shape.dim[0], matrix->shape.dim[1], 1, 1)};
}

/* A tag's name has a letter for each dimension, the first ones of the alphabet. */
static bool is_of_rank_2(dnnl_format_tag_t tag) { return !strpbrk(dnnl_fmt_tag2str(tag), "cdefCDEF"); }

struct cvy_desc cpu_layout_desc(const struct cvy_layout *layout, const struct cvy_desc *desc) {
    bool is_matrix = layout && desc->shape.n == 2 && !is_of_rank_2(tag_of(layout));
    return is_matrix ? cpu_desc_of_weights(desc) : *desc;
}

/* Row-major strides; oneDNN has tags for that too, but this serves every rank alike. */
static dnnl_status_t plain_md(int rank, const dnnl_dims_t dims, dnnl_data_type_t type,
                              dnnl_memory_desc_t *out) {
    dnnl_dims_t strides = {0};
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= dims[i];
    }
    return dnnl_memory_desc_init_by_strides(out, rank, dims, type, strides);
}

cvy_status cpu_layout_md(const struct cvy_layout *layout, const struct cvy_desc *desc, int64_t groups,
                         dnnl_memory_desc_t *out) {
    const struct cvy_desc seen = cpu_layout_desc(layout, desc);
    desc = &seen;
    dnnl_data_type_t type;
    dnnl_dims_t dims = {0};
    int rank = 0;
    if (cpu_layout_groups(layout) > 1)
        groups = cpu_layout_groups(layout);
    if (!cpu_dtype(desc->dtype, &type))
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "oneDNN has no %s", cvy_dtype_name(desc->dtype));
    if (groups > 1)
        dims[rank++] = groups;
    for (int i = 0; i < desc->shape.n; i++)
        dims[rank++] = i == 0 && groups > 1 ? desc->shape.dim[0] / groups : desc->shape.dim[i];
    dnnl_status_t made;
    if (!layout)
        made = plain_md(rank, dims, type, out);
    else
        made = dnnl_memory_desc_init_by_tag(out, rank, dims, type, tag_of(layout));
    if (made != dnnl_success)
        return CVY_FAIL(CVY_ERR_FAILED, "%s does not fit a tensor of rank %d",
                        layout ? dnnl_fmt_tag2str(tag_of(layout)) : "plain", desc->shape.n);
    return CVY_OK;
}

cvy_status cpu_layout_of(const dnnl_memory_desc_t *md, const struct cvy_desc *desc,
                         const struct cvy_layout **out) {
    int64_t groups = md->ndims == desc->shape.n + 1 ? md->dims[0] : 1;
    dnnl_format_tag_t tag;
    dnnl_memory_desc_t plain;
    if (plain_md(md->ndims, md->dims, md->data_type, &plain) == dnnl_success &&
        dnnl_memory_desc_equal(&plain, md)) {
        *out = NULL;
        return CVY_OK;
    }
    if (!tag_of_md(md, &tag))
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "oneDNN answers a memory format without a name");
    if (groups > MAX_GROUPS)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "a convolution in %lld groups; at most %d are supported",
                        (long long)groups, MAX_GROUPS);
    *out = pack(tag, groups);
    return CVY_OK;
}

bool cpu_layout_view(const struct cvy_layout *layout, const struct cvy_desc *desc, struct cpu_view *out) {
    const struct cvy_shape *s = &desc->shape;
    dnnl_format_tag_t tag = tag_of(layout); /* undefined where it is plain */
    if (s->n < 2 || cpu_layout_groups(layout) > 1)
        return false;
    struct cpu_view v = {.n = s->dim[0], .channels = s->dim[1], .pixels = 1};
    for (int i = 2; i < s->n; i++)
        v.pixels *= s->dim[i];
    int64_t in_memory = v.channels;
    if (!layout) {
        v.lanes = v.pixel = 1;
        v.block = v.pixels;
    } else if (tag == dnnl_nhwc) {
        v.lanes = v.block = 16;
        v.pixel = v.channels;
    } else if (tag == dnnl_nChw16c || tag == dnnl_nChw8c || tag == dnnl_nChw4c) {
        v.lanes = v.pixel = tag == dnnl_nChw16c ? 16 : tag == dnnl_nChw8c ? 8 : 4;
        v.block = v.pixels * v.lanes;
        in_memory = (v.channels + v.lanes - 1) / v.lanes * v.lanes;
    } else {
        return false;
    }
    v.n_blocks = (v.channels + v.lanes - 1) / v.lanes;
    v.image = in_memory * v.pixels;
    v.padded_channels = in_memory;
    *out = v;
    return true;
}

/* ---- the backend's slots ------------------------------------------------------------------------- */

size_t cpu_layout_bytes(const struct cvy_layout *layout, const struct cvy_desc *desc) {
    dnnl_memory_desc_t md;
    if (!layout)
        return cvy_desc_bytes(desc);
    return cpu_layout_md(layout, desc, 1, &md) == CVY_OK ? dnnl_memory_desc_get_size(&md) : 0;
}

void cpu_layout_print(const struct cvy_layout *layout, struct cvy_text *out) {
    if (cpu_layout_groups(layout) > 1)
        cvy_text_printf(out, "g%lld:", (long long)cpu_layout_groups(layout));
    cvy_text_printf(out, "%s", layout ? dnnl_fmt_tag2str(tag_of(layout)) : "plain");
}

bool cpu_layout_find(struct cvy_device *device, const char *name, const struct cvy_layout **out) {
    (void)device;
    return parse(name, out);
}

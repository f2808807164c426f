/* See state_dict.h. A tensor is a call of torch._utils._rebuild_tensor_v2(storage, offset, size, stride, …), offset
   and strides in elements; a storage lies outside the pickle and is named by ('storage', its type, key, device,
   elements). */
#include "graph/state_dict.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define LL(x) ((long long)(x))

enum { G_DICT, G_TENSOR, G_PARAMETER, G_ARGUMENTS, G_FIRST_STORAGE };

/* What Python would find under these names is never called. Namespace: the "args" of torchvision's scripts. */
const char *const cvy_state_dict_names[] = {"collections.OrderedDict",
                                            "torch._utils._rebuild_tensor_v2",
                                            "torch._utils._rebuild_parameter",
                                            "argparse.Namespace",
                                            "torch.FloatStorage",
                                            "torch.HalfStorage",
                                            "torch.BFloat16Storage",
                                            "torch.DoubleStorage",
                                            "torch.IntStorage",
                                            "torch.LongStorage",
                                            "torch.ByteStorage",
                                            "torch.BoolStorage",
                                            "torch.CharStorage",
                                            "torch.ShortStorage",
                                            NULL};

/* In the order of the names from G_FIRST_STORAGE on. */
static const struct storage_type {
    size_t n_bytes;
    bool is_ours;
    cvy_dtype dtype;
} types[] = {
    {4, true, CVY_F32}, {2, true, CVY_F16}, {2, true, CVY_BF16}, {8, true, CVY_F64}, {4, true, CVY_I32},
    {8, true, CVY_I64}, {1, true, CVY_U8},  {1, false, 0},       {1, false, 0},      {2, false, 0},
};

struct cvy_state_entry {
    const char *name, *type_name;
    struct cvy_desc desc;
    size_t element_bytes;
    bool is_ours, is_row_major;
    int64_t stride[CVY_MAX_DIMS];
    const unsigned char *bytes; /* of its first element */
    const void *gathered;       /* row-major, once it was needed */
};

typedef const struct cvy_pickle_value item;

/* ---- a tensor's call ------------------------------------------------------------------------------------------ */

static bool is_call(item *value, int64_t global, uint32_t n_min) {
    return value && value->kind == CVY_PICKLE_CALL && value->integer == global && value->n_items >= n_min;
}

static bool as_size(item *value, int64_t *out) {
    if (!value || value->kind != CVY_PICKLE_INT || value->integer < 0)
        return false;
    *out = value->integer;
    return true;
}

/* The storage's bytes and the number of its elements, into the entry's bytes and *n. */
static cvy_status read_storage(const struct cvy_pickle *p, item *value, cvy_storage_source *source,
                               const void *context, struct cvy_state_entry *entry, int64_t *n) {
    item *id = value && value->kind == CVY_PICKLE_OUTER ? cvy_pickle_item(p, value, 0) : NULL;
    if (!id || id->kind != CVY_PICKLE_TUPLE || !cvy_pickle_is_text(cvy_pickle_item(p, id, 0), "storage"))
        return CVY_FAIL(CVY_ERR_DATA, "tensor '%s': it has no storage", entry->name);
    item *type = cvy_pickle_item(p, id, 1), *key = cvy_pickle_item(p, id, 2);
    if (!type || type->kind != CVY_PICKLE_GLOBAL || type->integer < G_FIRST_STORAGE || !key ||
        key->kind != CVY_PICKLE_TEXT || !as_size(cvy_pickle_item(p, id, 4), n))
        return CVY_FAIL(CVY_ERR_DATA, "tensor '%s': its storage is not right", entry->name);
    const struct storage_type *t = &types[type->integer - G_FIRST_STORAGE];
    uint64_t n_bytes;
    cvy_status status = source(context, key->text, key->n_text, &entry->bytes, &n_bytes);
    if (status != CVY_OK)
        return cvy_fail_prefix(status, "tensor '%s': ", entry->name);
    if ((uint64_t)*n > n_bytes / t->n_bytes)
        return CVY_FAIL(CVY_ERR_DATA, "tensor '%s': its storage of %lld elements has only %llu bytes",
                        entry->name, LL(*n), (unsigned long long)n_bytes);
    entry->type_name = cvy_state_dict_names[type->integer];
    entry->element_bytes = t->n_bytes;
    entry->is_ours = t->is_ours;
    entry->desc.dtype = t->dtype;
    return CVY_OK;
}

/* Sizes and strides: every element lies within the storage's n, and no two share a place by a stride of 0. */
static cvy_status read_layout(const struct cvy_pickle *p, item *size, item *stride, int64_t offset, int64_t n,
                              struct cvy_state_entry *entry) {
    if (!size || size->kind != CVY_PICKLE_TUPLE || !stride || stride->kind != CVY_PICKLE_TUPLE ||
        size->n_items != stride->n_items)
        return CVY_FAIL(CVY_ERR_DATA, "tensor '%s': size and strides are not two tuples", entry->name);
    if (size->n_items > CVY_MAX_DIMS)
        return CVY_FAIL(CVY_ERR_DATA, "tensor '%s': more than %d dimensions", entry->name, CVY_MAX_DIMS);
    struct cvy_shape *shape = &entry->desc.shape;
    shape->n = (int)size->n_items;
    int64_t count = 1, last = 0, expected = 1;
    entry->is_row_major = true;
    for (int i = 0; i < shape->n; i++) {
        if (!as_size(cvy_pickle_item(p, size, (uint32_t)i), &shape->dim[i]) ||
            !as_size(cvy_pickle_item(p, stride, (uint32_t)i), &entry->stride[i]))
            return CVY_FAIL(CVY_ERR_DATA,
                            "tensor '%s': dimension %d of size or stride is not a number from 0 on",
                            entry->name, i);
        count = shape->dim[i] == 0 || count == 0 ? 0
                : shape->dim[i] > n / count      ? n + 1
                                                 : count * shape->dim[i];
        if (count > n)
            return CVY_FAIL(CVY_ERR_DATA,
                            "tensor '%s': it has more elements than its storage (is it expanded?)",
                            entry->name);
    }
    for (int i = shape->n - 1; i >= 0 && count > 0; i--) {
        if (shape->dim[i] == 1)
            continue;
        if (entry->stride[i] > (n - last) / (shape->dim[i] - 1))
            return CVY_FAIL(CVY_ERR_DATA, "tensor '%s': its strides leave its storage", entry->name);
        last += entry->stride[i] * (shape->dim[i] - 1);
        entry->is_row_major = entry->is_row_major && entry->stride[i] == expected;
        expected *= shape->dim[i];
    }
    if (offset > n || (count > 0 && last >= n - offset))
        return CVY_FAIL(CVY_ERR_DATA, "tensor '%s': it leaves its storage", entry->name);
    entry->bytes += (uint64_t)offset * entry->element_bytes;
    return CVY_OK;
}

static cvy_status read_tensor(const struct cvy_pickle *p, item *value, cvy_storage_source *source,
                              const void *context, struct cvy_state_entry *entry) {
    int64_t offset, n;
    if (is_call(value, G_PARAMETER, 1))
        value = cvy_pickle_item(p, value, 0);
    if (!is_call(value, G_TENSOR, 4))
        return CVY_FAIL(CVY_ERR_DATA, "'%s' is not a tensor: save the model's state_dict() alone",
                        entry->name);
    CVY_TRY(read_storage(p, cvy_pickle_item(p, value, 0), source, context, entry, &n));
    if (!as_size(cvy_pickle_item(p, value, 1), &offset))
        return CVY_FAIL(CVY_ERR_DATA, "tensor '%s': its offset is not a number from 0 on", entry->name);
    return read_layout(p, cvy_pickle_item(p, value, 2), cvy_pickle_item(p, value, 3), offset, n, entry);
}

/* ---- the dict ------------------------------------------------------------------------------------------------- */

/* The value of the root's key, if it is a dict. */
static item *inner_dict(const struct cvy_pickle *p, const char *name) {
    for (uint32_t link = p->root->first; link; link = p->links[p->links[link].next].next) {
        item *value = &p->values[p->links[p->links[link].next].value];
        if (cvy_pickle_is_text(&p->values[p->links[link].value], name) && value->kind == CVY_PICKLE_DICT)
            return value;
    }
    return NULL;
}

/* torchvision's files of densenets are older than the names of its layers, and it renames them as it reads them:
   "…denselayer3.norm.1.weight" is "…denselayer3.norm1.weight", and "conv" likewise. */
static void rename_dense_layer(char *name) {
    static const char layer[] = "denselayer", *const parts[] = {".norm.", ".conv."};
    char *at = strstr(name, layer);
    if (!at)
        return;
    at += sizeof layer - 1;
    at += strspn(at, "0123456789");
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(parts[i]);
        if (strncmp(at, parts[i], n) == 0 && (at[n] == '1' || at[n] == '2') && at[n + 1] == '.')
            memmove(at + n - 1, at + n, strlen(at + n) + 1);
    }
}

static cvy_status copy_name(struct cvy_state_dict *dict, item *key, const char **out) {
    if (key->kind != CVY_PICKLE_TEXT || memchr(key->text, '\0', key->n_text))
        return CVY_FAIL(CVY_ERR_DATA, "a key of its dict is not a name: is it a state_dict()?");
    char *name;
    CVY_TRY(cvy_pool_printf(&dict->pool, &name, "%.*s", (int)key->n_text, key->text));
    rename_dense_layer(name);
    for (const char *c = name; *c; c++) {
        if ((unsigned char)*c < ' ')
            return CVY_FAIL(CVY_ERR_DATA, "a name in its dict has a control character");
    }
    *out = name;
    return cvy_is_utf8(name) ? CVY_OK : CVY_FAIL(CVY_ERR_DATA, "a name in its dict is not UTF-8");
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct cvy_state_entry *)a)->name, ((const struct cvy_state_entry *)b)->name);
}

cvy_status cvy_state_dict_read(const struct cvy_pickle *pickle, cvy_storage_source *source,
                               const void *context, struct cvy_state_dict *out) {
    const struct cvy_pickle *p = pickle;
    if (p->root->kind != CVY_PICKLE_DICT)
        return CVY_FAIL(CVY_ERR_DATA, "it holds no dict of tensors: save the model's state_dict()");
    item *dict = inner_dict(p, "state_dict");
    dict = dict ? dict : inner_dict(p, "model");
    dict = dict ? dict : p->root;
    CVY_TRY(CVY_ALLOC(out->entries, dict->n_items / 2));
    for (uint32_t link = dict->first; link; link = p->links[link].next) {
        struct cvy_state_entry *entry = &out->entries[out->n];
        CVY_TRY(copy_name(out, &p->values[p->links[link].value], &entry->name));
        link = p->links[link].next;
        CVY_TRY(read_tensor(p, &p->values[p->links[link].value], source, context, entry));
        out->n++;
    }
    qsort(out->entries, out->n, sizeof *out->entries, by_name);
    for (size_t i = 1; i < out->n; i++) {
        if (strcmp(out->entries[i - 1].name, out->entries[i].name) == 0)
            return CVY_FAIL(CVY_ERR_DATA, "it has two tensors '%s'", out->entries[i].name);
    }
    return CVY_OK;
}

void cvy_state_dict_free(struct cvy_state_dict *dict) {
    free(dict->entries);
    cvy_pool_free(&dict->pool);
    *dict = (struct cvy_state_dict){0};
}

/* ---- looking into it ------------------------------------------------------------------------------------------ */

const char *cvy_state_dict_name(const struct cvy_state_dict *dict, size_t i) { return dict->entries[i].name; }

/* Copies the elements of a tensor with other strides (channels-last, transposed) into row-major order. */
static cvy_status gather(struct cvy_state_dict *dict, struct cvy_state_entry *entry) {
    const struct cvy_shape *shape = &entry->desc.shape;
    uint64_t n = (uint64_t)cvy_shape_count(shape), size = entry->element_bytes;
    unsigned char *to;
    if (n * size > dict->gather_left)
        return CVY_FAIL(CVY_ERR_DATA, "tensor '%s': too many tensors share storages with other strides",
                        entry->name);
    dict->gather_left -= n * size;
    CVY_TRY(cvy_pool_alloc(&dict->pool, n * size, (void **)&to));
    for (uint64_t i = 0; i < n; i++) {
        uint64_t rest = i, place = 0;
        for (int d = shape->n - 1; d >= 0; d--) {
            place += rest % (uint64_t)shape->dim[d] * (uint64_t)entry->stride[d];
            rest /= (uint64_t)shape->dim[d];
        }
        memcpy(to + i * size, entry->bytes + place * size, size);
    }
    entry->gathered = to;
    return CVY_OK;
}

cvy_status cvy_state_dict_find(struct cvy_state_dict *dict, const char *name, struct cvy_desc *desc,
                               const void **bytes) {
    const struct cvy_state_entry key = {.name = name};
    struct cvy_state_entry *entry = bsearch(&key, dict->entries, dict->n, sizeof key, by_name);
    if (!entry)
        return CVY_FAIL(CVY_ERR_DATA, "there is no tensor '%s' in it", name);
    if (!entry->is_ours)
        return CVY_FAIL(CVY_ERR_DATA, "tensor '%s': a %s cannot be read: convert it to float32, say", name,
                        entry->type_name);
    if (!entry->is_row_major && !entry->gathered)
        CVY_TRY(gather(dict, entry));
    *desc = entry->desc;
    *bytes = entry->gathered ? entry->gathered : entry->bytes;
    return CVY_OK;
}

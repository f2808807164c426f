/* The parameter store: see store.h. */
#include "engine/store.h"

#include <stdlib.h>
#include <string.h>

struct cvy_stored *cvy_store_find(const struct cvy_store *store, const char *name) {
    for (size_t i = 0; i < store->values.n; i++) {
        if (strcmp(store->values.data[i].name, name) == 0)
            return &store->values.data[i];
    }
    return NULL;
}

/* The stage of the first node that reads v; -1 when none does. */
static int32_t reading_stage(const struct cvy_graph *g, cvy_value v) {
    for (size_t i = 0; v != CVY_NONE && i < g->nodes.n; i++) {
        const struct cvy_node *node = &g->nodes.data[i];
        for (int k = 0; k < node->n_in; k++) {
            if (node->in[k] == v)
                return node->stage;
        }
    }
    return -1;
}

/* The stage that keeps stored value v: the one that reads it in g; else, for a parameter that the loss does not depend
   on, the one that reads it in evaluation. What nobody reads stays on the first. */
static int32_t home_stage(const struct cvy_graph *g, const struct cvy_graph *evaluation, cvy_value v) {
    int32_t stage = reading_stage(g, v);
    if (stage < 0)
        stage = reading_stage(evaluation, cvy_graph_find(evaluation, g->values.data[v].name));
    return stage < 0 ? 0 : stage;
}

static cvy_status add_stored(struct cvy_store *store, const struct cvy_value_info *info,
                             const struct cvy_device *device) {
    struct cvy_stored stored = {.kind = info->kind,
                                .desc = info->desc,
                                .init = info->init,
                                .is_auxiliary = info->is_auxiliary,
                                .layout = info->layout};
    char *name = NULL;
    CVY_TRY(cvy_pool_strdup(&store->pool, info->name, &name));
    stored.name = name;
    size_t n = cvy_align_up(device->backend->layout_bytes(info->layout, &info->desc), CVY_ALIGN);
    stored.place = (struct cvy_place){CVY_SPACE_PERSIST, store->persist_bytes, n};
    store->persist_bytes += n;
    if (info->kind == CVY_VALUE_PARAM || info->kind == CVY_VALUE_BUFFER)
        store->weight_bytes = store->persist_bytes;
    size_t plain = cvy_align_up(cvy_desc_bytes(&info->desc), CVY_ALIGN);
    store->staging_bytes = plain > store->staging_bytes ? plain : store->staging_bytes;
    return cvy_vec_push(&store->values, stored);
}

cvy_status cvy_store_build(struct cvy_store *store, const struct cvy_graph *g,
                           const struct cvy_graph *evaluation, const struct cvy_device *device,
                           int32_t stage) {
    for (size_t v = 0; v < g->values.n; v++) {
        const struct cvy_value_info *info = &g->values.data[v];
        bool is_stored = info->kind != CVY_VALUE_INPUT && info->kind != CVY_VALUE_RESULT;
        if (is_stored && (info->kind == CVY_VALUE_HYPER || home_stage(g, evaluation, (cvy_value)v) == stage))
            CVY_TRY(add_stored(store, info, device));
    }
    return CVY_OK;
}

cvy_status cvy_store_pack(struct cvy_store *store, const char *name, size_t n_bytes,
                          struct cvy_packed **out) {
    for (size_t i = 0; i < store->packs.n; i++) {
        *out = &store->packs.data[i];
        if (strcmp((*out)->name, name) == 0)
            return CVY_OK;
    }
    struct cvy_packed packed = {
        .place = {CVY_SPACE_PACKED, store->packed_bytes, cvy_align_up(n_bytes, CVY_ALIGN)}};
    char *copy = NULL;
    CVY_TRY(cvy_pool_strdup(&store->pool, name, &copy));
    packed.name = copy;
    store->packed_bytes += packed.place.n_bytes;
    CVY_TRY(cvy_vec_push(&store->packs, packed));
    *out = &store->packs.data[store->packs.n - 1];
    return CVY_OK;
}

static cvy_status make_reorder(struct cvy_store *store, struct cvy_device *device,
                               const struct cvy_desc *desc, const struct cvy_layout *from,
                               const struct cvy_layout *to, struct cvy_kernel **out) {
    struct cvy_operand_spec in = {.desc = *desc, .layout = from, .is_fixed = true},
                            result = {.desc = *desc, .layout = to, .is_fixed = true};
    struct cvy_call call = {.op = cvy_op_find("reorder"), .n_in = 1, .n_out = 1, .in = &in, .out = &result};
    size_t scratch = 0;
    CVY_TRY(cvy_kernel_select(device, &call, NULL)->prepare(device, &call, out, &scratch));
    store->scratch_bytes = scratch > store->scratch_bytes ? scratch : store->scratch_bytes;
    return CVY_OK;
}

cvy_status cvy_store_prepare(struct cvy_store *store, struct cvy_device *device) {
    for (size_t i = 0; i < store->values.n; i++) {
        struct cvy_stored *s = &store->values.data[i];
        if (s->layout && !s->pack) {
            CVY_TRY(make_reorder(store, device, &s->desc, NULL, s->layout, &s->pack));
            CVY_TRY(make_reorder(store, device, &s->desc, s->layout, NULL, &s->unpack));
        }
    }
    return CVY_OK;
}

static void release(struct cvy_kernel *kernel) {
    if (kernel)
        kernel->impl->release(kernel);
}

void cvy_store_free(struct cvy_store *store) {
    for (size_t i = 0; i < store->values.n; i++) {
        release(store->values.data[i].pack);
        release(store->values.data[i].unpack);
    }
    cvy_vec_free(&store->values);
    cvy_vec_free(&store->packs);
    cvy_pool_free(&store->pool);
}

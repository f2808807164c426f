/* See tensors.h. */
#include "engine/tensors.h"

#include <stdlib.h>
#include <string.h>

bool cvy_stored_is_weight(const struct cvy_stored *stored) {
    return stored->kind == CVY_VALUE_PARAM || stored->kind == CVY_VALUE_BUFFER;
}
bool cvy_stored_is_state(const struct cvy_stored *stored) { return stored->kind == CVY_VALUE_STATE; }

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct cvy_safetensor *)a)->name, ((const struct cvy_safetensor *)b)->name);
}

cvy_status cvy_tensors_open(const struct cvy_session *session,
                            bool (*select)(const struct cvy_stored *stored), struct cvy_tensors *out) {
    size_t at = 0;
    *out = (struct cvy_tensors){.n = 0};
    for (size_t i = 0; i < session->stored.n; i++) {
        if (select(session->stored.data[i]))
            out->n_bytes += cvy_align_up(cvy_desc_bytes(&session->stored.data[i]->desc), CVY_ALIGN);
    }
    CVY_TRY(CVY_ALLOC(out->data, session->stored.n));
    CVY_TRY(CVY_ALLOC(out->block, out->n_bytes));
    for (size_t i = 0; i < session->stored.n; i++) {
        const struct cvy_stored *s = session->stored.data[i];
        if (!select(s))
            continue;
        out->data[out->n++] =
            (struct cvy_safetensor){.name = s->name, .desc = s->desc, .bytes = out->block + at};
        at += cvy_align_up(cvy_desc_bytes(&s->desc), CVY_ALIGN);
    }
    qsort(out->data, out->n, sizeof *out->data, by_name);
    return CVY_OK;
}

cvy_status cvy_tensors_read(struct cvy_session *session, struct cvy_tensors *tensors) {
    for (size_t i = 0; i < tensors->n; i++) {
        const struct cvy_safetensor *t = &tensors->data[i];
        CVY_TRY(
            cvy_session_read(session, t->name, tensors->block + ((const char *)t->bytes - tensors->block)));
    }
    return CVY_OK;
}

void cvy_tensors_free(struct cvy_tensors *tensors) {
    free(tensors->data);
    free(tensors->block);
    *tensors = (struct cvy_tensors){.n = 0};
}

/* The forms of operations. Names and trees are compared by hash, so that a form has a fixed size. */
#include "comm/note.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

static void set_name(struct cvy_op_form *form, const char *name) {
    size_t n = strlen(name), kept = n < CVY_OP_NAME ? n : CVY_OP_NAME - 1;
    form->name_hash = XXH3_64bits(name, n);
    memcpy(form->name, name, kept);
}

void cvy_op_form_reduction(const struct cvy_reduction *what, struct cvy_op_form *out) {
    uint64_t hash = 0;
    for (int32_t p = 0; p < what->n_partials; p++) {
        const struct cvy_partial *partial = &what->partials[p];
        int32_t words[3] = {partial->first, partial->level, partial->device};
        hash = XXH3_64bits_withSeed(words, sizeof words, hash);
    }
    memset(out, 0, sizeof *out);
    *out = (struct cvy_op_form){.is_reduction = true,
                                .n = what->n,
                                .n_shards = what->n_shards,
                                .n_partials = what->n_partials,
                                .tree_hash = hash};
    set_name(out, what->name);
}

void cvy_op_form_broadcast(const char *name, int root, size_t n_bytes, struct cvy_op_form *out) {
    memset(out, 0, sizeof *out);
    *out = (struct cvy_op_form){.root = root, .n = n_bytes};
    set_name(out, name);
}

/* "bucket 2 (64 floats, 4 shards, 4 partial sums)" */
static const char *describe(const struct cvy_op_form *form, char out[CVY_OP_NAME + 96]) {
    if (form->is_reduction)
        snprintf(out, CVY_OP_NAME + 96, "%s (%llu floats, %d shards, %d partial sums)", form->name,
                 (unsigned long long)form->n, form->n_shards, form->n_partials);
    else
        snprintf(out, CVY_OP_NAME + 96, "%s (%llu bytes from member %d)", form->name,
                 (unsigned long long)form->n, form->root);
    return out;
}

cvy_status cvy_op_forms_agree(int a, const struct cvy_op_form *of_a, int b, const struct cvy_op_form *of_b) {
    if (of_a->is_reduction == of_b->is_reduction && of_a->n == of_b->n && of_a->root == of_b->root &&
        of_a->n_shards == of_b->n_shards && of_a->n_partials == of_b->n_partials &&
        of_a->tree_hash == of_b->tree_hash && of_a->name_hash == of_b->name_hash)
        return CVY_OK;
    char text_a[CVY_OP_NAME + 96], text_b[CVY_OP_NAME + 96];
    return CVY_FAIL(CVY_ERR_LOST,
                    "member %d brought %s and member %d brought %s: they must run the same program", a,
                    describe(of_a, text_a), b, describe(of_b, text_b));
}

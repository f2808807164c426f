/* Names to numbers: FNV-1a, linear probing, doubling. See names.h. */
#include "graph/names.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static size_t hash(const char *name) {
    uint64_t h = UINT64_C(14695981039346656037);
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return (size_t)(h ^ h >> 32);
}

/* Where `name` is, or the free slot where it would go. Needs cap > 0. */
static struct cvy_name_slot *probe(const struct cvy_names *names, const char *name) {
    size_t at = hash(name) & (names->cap - 1);
    while (names->slots[at].name && strcmp(names->slots[at].name, name) != 0)
        at = (at + 1) & (names->cap - 1);
    return &names->slots[at];
}

int32_t cvy_names_find(const struct cvy_names *names, const char *name) {
    if (names->cap == 0)
        return -1;
    const struct cvy_name_slot *slot = probe(names, name);
    return slot->name ? slot->number : -1;
}

static cvy_status grow(struct cvy_names *names) {
    struct cvy_names grown = {.n = names->n, .cap = names->cap ? 2 * names->cap : 64};
    CVY_TRY(CVY_ALLOC(grown.slots, grown.cap));
    for (size_t i = 0; i < names->cap; i++) {
        if (names->slots[i].name)
            *probe(&grown, names->slots[i].name) = names->slots[i];
    }
    cvy_names_free(names);
    *names = grown;
    return CVY_OK;
}

cvy_status cvy_names_add(struct cvy_names *names, const char *name, int32_t number) {
    if (2 * (names->n + 1) > names->cap)
        CVY_TRY(grow(names));
    *probe(names, name) = (struct cvy_name_slot){name, number};
    names->n++;
    return CVY_OK;
}

void cvy_names_free(struct cvy_names *names) {
    free(names->slots);
    *names = (struct cvy_names){0};
}

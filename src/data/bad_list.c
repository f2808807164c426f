/* Sorted by sample, so that a known one is found quickly. */
#include "data/bad_list.h"

#include "base/mem.h"
#include "base/vec.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    int64_t i;
    char *reason;
};

struct cvy_bad_list {
    pthread_mutex_t lock;
    CVY_VEC(struct entry) entries;
};

cvy_status cvy_bad_list_new(struct cvy_bad_list **out) {
    CVY_TRY(CVY_ALLOC(*out, 1));
    pthread_mutex_init(&(*out)->lock, NULL);
    return CVY_OK;
}

void cvy_bad_list_free(struct cvy_bad_list *list) {
    if (!list)
        return;
    for (size_t k = 0; k < list->entries.n; k++)
        free(list->entries.data[k].reason);
    cvy_vec_free(&list->entries);
    pthread_mutex_destroy(&list->lock);
    free(list);
}

/* The place of the first entry that is not before i. */
static size_t place_of(const struct cvy_bad_list *list, int64_t i) {
    size_t low = 0, high = list->entries.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->entries.data[middle].i < i)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Holding the lock. */
static cvy_status insert(struct cvy_bad_list *list, int64_t i, const char *reason) {
    size_t at = place_of(list, i);
    if (at < list->entries.n && list->entries.data[at].i == i)
        return CVY_OK;
    struct entry entry = {i, strdup(reason)};
    if (!entry.reason)
        return CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for the list of bad images");
    cvy_status status = cvy_vec_push(&list->entries, entry);
    if (status != CVY_OK) {
        free(entry.reason);
        return status;
    }
    struct entry *to = &list->entries.data[at];
    memmove(to + 1, to, (list->entries.n - 1 - at) * sizeof *to);
    *to = entry;
    return CVY_OK;
}

cvy_status cvy_bad_list_note(struct cvy_bad_list *list, int64_t i) {
    pthread_mutex_lock(&list->lock);
    cvy_status status = insert(list, i, cvy_error());
    pthread_mutex_unlock(&list->lock);
    return status;
}

int64_t cvy_bad_list_tell(struct cvy_bad_list *list, void (*tell)(void *context, const char *reason),
                          void *context) {
    pthread_mutex_lock(&list->lock);
    int64_t n = (int64_t)list->entries.n;
    for (size_t k = 0; tell && k < list->entries.n; k++)
        tell(context, list->entries.data[k].reason);
    pthread_mutex_unlock(&list->lock);
    return n;
}

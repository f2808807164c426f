/* The samples of a data set that could not be read, each once, with the reason. Threads may share it. */
#ifndef CVY_DATA_BAD_LIST_H
#define CVY_DATA_BAD_LIST_H

#include "base/status.h"

#include <stdint.h>

struct cvy_bad_list;

cvy_status cvy_bad_list_new(struct cvy_bad_list **out);
void cvy_bad_list_free(struct cvy_bad_list *list);

/* Notes sample i with this thread's newest error, unless it is known. */
cvy_status cvy_bad_list_note(struct cvy_bad_list *list, int64_t i);

/* Calls `tell` with each reason, in the data set's order; returns how many there are. `tell` may be NULL. */
int64_t cvy_bad_list_tell(struct cvy_bad_list *list, void (*tell)(void *context, const char *reason),
                          void *context);

#endif

/* Images of formats that people have and Convoy cannot read: known by their suffixes, left out, counted and named. */
#ifndef CVY_DATA_OTHERS_H
#define CVY_DATA_OTHERS_H

#include "base/log.h"

#include <stdint.h>

enum { CVY_N_OTHERS = 9 };
struct cvy_others { /* zero-initialised; it is kept in files: whoever changes it changes their kind */
    uint64_t n[CVY_N_OTHERS]; /* of each suffix */
};

/* Counts `name` if it has such a suffix, in any case. */
void cvy_others_count(struct cvy_others *others, const char *name);
void cvy_others_add(struct cvy_others *to, const struct cvy_others *more);
uint64_t cvy_others_total(const struct cvy_others *others);
/* Names how many of each were left out of `where`, if there are any. */
cvy_status cvy_others_warn(const struct cvy_others *others, const char *where, const cvy_log_sink *log);

#endif

/* Moving the files that an audit found bad out of a data set. */
#ifndef CVY_DATA_QUARANTINE_H
#define CVY_DATA_QUARANTINE_H

#include "data/audit.h"

/* May they be moved to `dir`? It must lie outside of the data set, whose samples are the files that are there. */
cvy_status cvy_quarantine_check(const struct cvy_dataset *dataset, const char *dir);

/* Moves the file of each finding that would stop a training to dir/PATH, making folders as needed. Nothing is deleted
   or replaced. *n_moved is right also after an error. */
cvy_status cvy_quarantine_move(const struct cvy_audit *audit, const char *dir, int64_t *n_moved);

#endif

/* --max-restarts: a parent that starts the run anew when it crashes. */
#ifndef CVY_CLI_RESTARTS_H
#define CVY_CLI_RESTARTS_H

#include "cli/options.h"

extern const struct flag_group group_restarts;

/* Without --max-restarts nothing. With it this process becomes the parent of the run: *is_parent, and *code is what it
   is to end with; and the call returns once more in each child, which trains, from the second on with --resume auto.
   No other thread may exist. CVY_ERR_USAGE: it does not go with other flags, or a launcher started this process. */
cvy_status restarts_supervise(struct flag_values *values, bool *is_parent, int *code);

#endif

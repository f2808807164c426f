/* Flags that watch over a training. */
#include "cli/options.h"

static void nan_ways(struct flag_names *out) {
    out->name[out->n++] = "stop";
    out->name[out->n++] = "skip";
}

static const struct flag guards_flags[] = {
    FLAG("on-nan", TEXT, on_nan,
         "when the loss or a gradient is not finite: stop, or skip that update on all devices; default: "
         "stop, but "
         "look at the loss alone",
         .choices = nan_ways),
    FLAG("check-sync", INT, check_sync,
         "compare the replicas' weights every so many updates, and stop if they are not the same bits; 0: "
         "never",
         .initial = "0", .min = 0, .max = 1 << 24),
};
GROUP(guards, "Guards");

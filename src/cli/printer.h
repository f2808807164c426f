/* What a training run shows: a progress bar on a terminal, plain lines anywhere else. */
#ifndef CVY_CLI_PRINTER_H
#define CVY_CLI_PRINTER_H

#include "engine/trainer.h"

struct printer {
    bool is_terminal;     /* of stdout */
    int64_t print_freq;   /* steps between two plain lines */
    int64_t next_draw_ns; /* the bar is drawn ten times a second at most */
};

/* "using 2 devices: cpu:0-1 (ddp, S=2, T=1)" */
void printer_devices(const cvy_plan *plan);
/* For cvy_trainer_events: the context is a struct printer. */
void printer_step(void *context, const struct cvy_step_report *r, const struct cvy_progress *p);
void printer_epoch(void *context, const struct cvy_epoch_report *r, const struct cvy_progress *p);

#endif

/* What a training run shows: a progress bar on a terminal, plain lines anywhere else. */
#ifndef CVY_CLI_PRINTER_H
#define CVY_CLI_PRINTER_H

#include "engine/trainer.h"

enum { PRINTER_LINE = 256 };

struct printer {
    bool is_terminal;     /* of stdout */
    int64_t print_freq;   /* steps between two plain lines */
    int64_t next_draw_ns; /* the bar is drawn ten times a second at most */
};

/* Can a line be drawn anew there? A file cannot, nor can a terminal that calls itself dumb. */
bool printer_is_terminal(int fd);
/* The line of a progress bar, in at most `width` - 1 columns: the bar shrinks first, then the end is cut off. */
void printer_bar(const struct cvy_step_report *r, const struct cvy_progress *p, int width,
                 char line[PRINTER_LINE]);
/* "using 2 devices: cpu:0-1 (ddp, S=2, T=1)" */
void printer_devices(const cvy_plan *plan);
/* After a step, after an epoch. */
void printer_step(struct printer *printer, const struct cvy_step_report *r, const struct cvy_progress *p);
void printer_epoch(const struct printer *printer, const struct cvy_epoch_report *r,
                   const struct cvy_progress *p);

#endif

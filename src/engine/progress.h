/* How far a training run is, how fast, and how long it still takes. Only time spent on training steps,
   loading included, counts; evaluation and checkpoints do not. */
#ifndef CVY_ENGINE_PROGRESS_H
#define CVY_ENGINE_PROGRESS_H

#include <stdint.h>

struct cvy_progress {
    int64_t n_total; /* images of the whole run: epochs x images */
    int64_t n_done;  /* of those, also in the run that this one resumes */
    int64_t n_timed; /* trained by this process ... */
    double seconds;  /* ... in this time */
};

/* n more images were trained, which took this long. */
void cvy_progress_add(struct cvy_progress *progress, int64_t n, double seconds);
/* Images per second; 0 before the first step. */
double cvy_progress_rate(const struct cvy_progress *progress);
/* Seconds until n_total at that rate; -1 when not known yet. */
double cvy_progress_left_s(const struct cvy_progress *progress);
/* "42s", "3m05s", "2h07m", "-" when seconds < 0. */
void cvy_progress_clock(double seconds, char text[16]);

#endif

/* See progress.h. */
#include "engine/progress.h"

#include <stdio.h>

void cvy_progress_add(struct cvy_progress *progress, int64_t n, double seconds) {
    progress->n_done += n;
    progress->n_timed += n;
    progress->seconds += seconds;
}

double cvy_progress_rate(const struct cvy_progress *progress) {
    return progress->seconds > 0 ? (double)progress->n_timed / progress->seconds : 0;
}

double cvy_progress_left_s(const struct cvy_progress *progress) {
    double rate = cvy_progress_rate(progress);
    return rate > 0 ? (double)(progress->n_total - progress->n_done) / rate : -1;
}

void cvy_progress_clock(double seconds, char text[16]) {
    if (seconds < 0) {
        snprintf(text, 16, "-");
        return;
    }
    const double cap = 999.0 * 3600; /* more than a month is shown as that */
    int s = (int)((seconds < cap ? seconds : cap) + 0.5);
    if (s < 60)
        snprintf(text, 16, "%ds", s);
    else if (s < 3600)
        snprintf(text, 16, "%dm%02ds", s / 60, s % 60);
    else
        snprintf(text, 16, "%dh%02dm", s / 3600, s / 60 % 60);
}

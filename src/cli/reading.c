/* See reading.h. */
#include "cli/reading.h"

#include "base/thread.h"
#include "cli/printer.h"

#include <stdio.h>
#include <unistd.h>

enum { REDRAW_NS = 100000000 };

static void draw(void *context, int64_t n_done, int64_t n) {
    struct reading *reading = context;
    const int64_t now = cvy_now_ns();
    if (now < reading->next_draw_ns && n_done < n)
        return;
    reading->next_draw_ns = now + REDRAW_NS;
    fprintf(stderr, "\r%s %lld/%lld images%s", reading->done, (long long)n_done, (long long)n,
            n_done < n ? "" : "\n");
}

struct cvy_survey_progress reading_progress(struct reading *reading) {
    const bool is_seen = printer_is_terminal(STDERR_FILENO);
    return (struct cvy_survey_progress){.tell = is_seen ? draw : NULL, .context = reading};
}

static const struct flag flags[] = {
    FLAG("workers", INT, workers, "threads that read", .letter = 'j', .initial = "2", .min = 1, .max = 256),
};
const struct flag_group group_reading = {.title = "Reading", .flags = flags, .n = 1};

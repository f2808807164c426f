/* What a command that reads a whole data set shows: how many images are read, on a terminal. */
#ifndef CVY_CLI_READING_H
#define CVY_CLI_READING_H

#include "cli/options.h"
#include "data/survey.h"

extern const struct flag_group group_reading; /* --workers, at least 1 */

struct reading {
    const char *done; /* what was done with the images: "checked" */
    int64_t next_draw_ns;
};

/* Draws a line on stderr, ten times a second at most; nothing where that is no terminal. Refers to *reading. */
struct cvy_survey_progress reading_progress(struct reading *reading);

#endif

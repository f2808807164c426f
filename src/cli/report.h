/* report.html: a run on one page that needs nothing from elsewhere, written when a training with an output folder
   is done. Its parts: curves of metrics.jsonl, one step of the devices, what the last evaluation got wrong, the
   settings. */
#ifndef CVY_CLI_REPORT_H
#define CVY_CLI_REPORT_H

#include "cli/report_page.h"
#include "cli/run_file.h"

/* Writes OUTPUT_DIR/report.html. Nothing without an output folder, or in another process than rank 0. Local. */
cvy_status report_write(const struct flag_values *values, struct cvy_trainer *trainer,
                        const struct run_result *result);

/* The parts, appended to the page. What they read may be missing or broken in places: then less is shown. */
cvy_status report_curves(struct cvy_text *page, const char *metrics_path, int64_t n_steps);
cvy_status report_step(struct cvy_text *page, const struct cvy_step_trace *s, const cvy_plan *plan);
cvy_status report_mistakes(struct cvy_text *page, const struct cvy_mistakes *mistakes,
                           const struct cvy_task *task);

#endif

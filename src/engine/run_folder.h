/* The folder that --output-dir names, as one run holds it: nobody else writes there, and a run that lies there already
   is gone on with or overwritten on purpose, never by accident. */
#ifndef CVY_ENGINE_RUN_FOLDER_H
#define CVY_ENGINE_RUN_FOLDER_H

#include "base/log.h"
#include "base/status.h"

#include <stdbool.h>

struct cvy_run_folder { /* zero-initialised: not held */
    const char *dir;    /* the caller's; NULL: not held */
    int lock_fd;        /* -1: the file system has no locks */
    bool has_old_run;   /* to be overwritten: its checkpoints stay until the first new one is whole */
};

#define CVY_RESUME_AUTO \
    "auto" /* in the place of a checkpoint: the newest whole one of the run's own folder */

struct cvy_run_folder_options {
    const char *dir; /* must outlive the folder */
    const char
        *resume;    /* --resume; a checkpoint of this very folder, or CVY_RESUME_AUTO, goes on with its run */
    bool overwrite; /* a run that is there may be replaced */
    const cvy_log_sink *log;
};

/* Makes the folder where needed, locks it until cvy_run_folder_close or the end of the process, however it comes, and
   clears up behind a run that was killed. CVY_ERR_IO: it cannot be written, or another process holds it;
   CVY_ERR_USAGE: it holds a run and the options do not say what becomes of that. Without effect on a folder that is
   held. Local. */
cvy_status cvy_run_folder_open(struct cvy_run_folder *folder, const struct cvy_run_folder_options *options);
void cvy_run_folder_close(struct cvy_run_folder *folder);

/* After a whole new checkpoint last/: removes the best/ of a run that is being overwritten. Local. */
void cvy_run_folder_drop_old(struct cvy_run_folder *folder);

#endif

/* See restarts.h. The parent does nothing but wait, so it has no handlers: signals are blocked and taken one by one.
   The child has a process group of its own, for a Ctrl-C must reach it once, from the parent. */
#include "cli/restarts.h"

#include "cli/interrupt.h"
#include "engine/run_folder.h"
#include "rt/comm.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct flag restarts_flags[] = {
    FLAG("max-restarts", INT, max_restarts,
         "start the run anew, as --resume auto, so many times when it crashes or fails (exit code 1 or 4)",
         .initial = "0", .min = 0, .max = 1 << 20, .is_not_kept = true),
};
GROUP(restarts, "Restarts");

static bool is_launched(void) {
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS");
    return cvy_transport_launched() || (tasks && atoi(tasks) > 1);
}

static cvy_status check(const struct flag_values *values) {
    const struct options *o = values->options;
    if (is_launched())
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--max-restarts: a launcher started this process, and only it can start all "
                        "of them anew: docs/checkpoints.md has the script around it");
    if (o->resume && strcmp(o->resume, CVY_RESUME_AUTO) != 0)
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "--max-restarts goes with --resume auto alone, not with '%s': --output-dir DIR --resume auto "
            "goes on with the run in DIR",
            o->resume);
    if (!o->output_dir)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--max-restarts: give the --output-dir whose checkpoints a restart goes on from");
    if (o->overwrite == 1)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--max-restarts and --overwrite: a restart could go on from the old run's "
                        "checkpoint; give another --output-dir");
    return CVY_OK;
}

/* Until the child has ended, what the parent is told is told to it. *is_stopped: there was something. */
static int wait_for(pid_t child, const sigset_t *signals, bool *is_stopped) {
    int state, number;
    while (waitpid(child, &state, WNOHANG) != child) {
        if (sigwait(signals, &number) != 0 || number == SIGCHLD)
            continue;
        *is_stopped = true;
        kill(child, number);
    }
    return state;
}

/* Does it make sense to try again? Says why the run ended. */
static bool is_crash(int state, char *why, size_t n_why) {
    if (WIFSIGNALED(state)) {
        snprintf(why, n_why, "signal %d, %s", WTERMSIG(state), strsignal(WTERMSIG(state)));
        return true;
    }
    const int code = WEXITSTATUS(state);
    snprintf(why, n_why, "exit code %d", code);
    return code == cvy_exit_code(CVY_ERR_FAILED) || code == cvy_exit_code(CVY_ERR_LOST);
}

/* In the child: it dies with its parent, after a checkpoint. */
static cvy_status begin_child(struct flag_values *values, const sigset_t *before, pid_t parent,
                              bool is_again) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, before, NULL);
    if (getppid() != parent) /* gone already */
        return CVY_FAIL(CVY_INTERRUPTED, "the parent of this run has ended");
    return is_again ? flags_set(values, "resume", CVY_RESUME_AUTO) : CVY_OK;
}

cvy_status restarts_supervise(struct flag_values *values, bool *is_parent, int *code) {
    const struct options *o = values->options;
    const pid_t parent = getpid();
    sigset_t signals, before;
    bool is_stopped = false;
    if (o->max_restarts == 0)
        return CVY_OK;
    CVY_TRY(check(values));
    interrupt_signals(&signals);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, &before);
    for (int64_t n = 0;; n++) {
        char why[96];
        fflush(NULL);
        const pid_t child = fork();
        if (child < 0)
            return CVY_FAIL(CVY_ERR_FAILED, "--max-restarts: no process could be started: %s",
                            strerror(errno));
        if (child == 0)
            return begin_child(values, &before, parent, n > 0);
        const int state = wait_for(child, &signals, &is_stopped);
        const bool is_again = is_crash(state, why, sizeof why) && !is_stopped && n < o->max_restarts;
        *is_parent = true;
        *code = WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
        if (!is_again)
            return CVY_OK;
        fprintf(stderr, "convoy: the run ended with %s: restart %lld of %lld\n", why, (long long)n + 1,
                (long long)o->max_restarts);
        *is_parent = false;
    }
}

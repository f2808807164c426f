/* See doctor.h: programs that are tried, in a process group of their own, so that a deadline ends all of it. */
#include "cli/doctor.h"

#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Between fork and exec: nothing but calls that are safe there. */
static void become(char *const *argv, int output) {
    setpgid(0, 0);
    if (dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0)
        execvp(argv[0], argv);
    _exit(127);
}

/* The exit status once it ended; false at the deadline. SIGCHLD stays as it is, so it is asked for every 2 ms. */
static bool wait_until(pid_t pid, int64_t deadline_ns, int *result) {
    const struct timespec nap = {.tv_nsec = 2000000};
    for (;;) {
        pid_t got = waitpid(pid, result, WNOHANG);
        if (got == pid || (got < 0 && errno != EINTR))
            return got == pid;
        if (cvy_now_ns() >= deadline_ns)
            return false;
        nanosleep(&nap, NULL);
    }
}

static int result_of(pid_t pid, double deadline_s) {
    int result = 0;
    if (wait_until(pid, cvy_now_ns() + (int64_t)(deadline_s * 1e9), &result))
        return WIFEXITED(result) && WEXITSTATUS(result) != 127 ? WEXITSTATUS(result) : -1;
    kill(-pid, SIGTERM); /* mpirun ends its processes, which are in groups of their own */
    if (!wait_until(pid, cvy_now_ns() + 1000000000, &result)) {
        kill(-pid, SIGKILL);
        (void)wait_until(pid, cvy_now_ns() + 1000000000, &result);
    }
    return -2;
}

int doctor_run_program(char *const *argv, double deadline_s, char *out, size_t n_bytes) {
    out[0] = 0;
    FILE *file = tmpfile(); /* unlike a pipe it is never full, and whoever is left over holds nobody up */
    if (!file)
        return -1;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become(argv, fileno(file));
    int code = pid < 0 ? -1 : result_of(pid, deadline_s);
    rewind(file);
    out[fread(out, 1, n_bytes - 1, file)] = 0;
    fclose(file);
    return code;
}

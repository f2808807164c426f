/* See interrupt.h. */
#include "cli/interrupt.h"

#include "base/thread.h"

#include <unistd.h>

enum { LAST_WORDS_US = 500000 };

void interrupt_signals(sigset_t *set) {
    struct sigaction hangup;
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    /* nohup has it ignored, but a blocked signal is delivered to sigwait all the same */
    if (sigaction(SIGHUP, NULL, &hangup) != 0 || hangup.sa_handler != SIG_IGN)
        sigaddset(set, SIGHUP);
}

static void *wait_for_signals(void *argument) {
    struct interrupt *interrupt = argument;
    int signal;
    while (sigwait(&interrupt->signals, &signal) == 0 && !interrupt->is_closing) {
        if (!interrupt->is_soft || interrupt->is_asked) {
            if (interrupt->is_in_company)
                usleep(LAST_WORDS_US);
            cvy_log(interrupt->log, CVY_LOG_INFO, "stopped: interrupted%s",
                    interrupt->is_asked ? " at once; the checkpoints are as they were" : "");
            _exit(cvy_exit_code(CVY_INTERRUPTED));
        }
        cvy_log(interrupt->log, CVY_LOG_INFO, "stopping after this step; Ctrl-C again: at once");
        interrupt->is_asked = true;
    }
    return NULL;
}

cvy_status interrupt_open(struct interrupt *interrupt, const cvy_log_sink *log) {
    interrupt->log = log;
    interrupt_signals(&interrupt->signals);
    pthread_sigmask(SIG_BLOCK, &interrupt->signals, &interrupt->before);
    cvy_status status = cvy_thread_start(&interrupt->thread, "interrupt", wait_for_signals, interrupt);
    interrupt->is_open = status == CVY_OK;
    if (status != CVY_OK)
        pthread_sigmask(SIG_SETMASK, &interrupt->before, NULL);
    return status;
}

void interrupt_close(struct interrupt *interrupt) {
    if (!interrupt->is_open)
        return;
    interrupt->is_closing = true;
    pthread_kill(interrupt->thread, SIGINT); /* wakes it */
    pthread_join(interrupt->thread, NULL);
    pthread_sigmask(SIG_SETMASK, &interrupt->before, NULL);
    interrupt->is_open = false;
}

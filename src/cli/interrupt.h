/* Ctrl-C and its like (SIGINT, SIGTERM, SIGHUP). They are blocked in all threads and taken by a thread of their own: so
   nothing is interrupted half-way, and no handler needs a global variable. */
#ifndef CVY_CLI_INTERRUPT_H
#define CVY_CLI_INTERRUPT_H

#include "base/log.h"
#include "base/status.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

struct interrupt { /* zero-initialised: not open */
    /* soft: the first signal only sets is_asked, the second ends the process; else the first one does */
    _Atomic bool is_soft;
    /* Other processes work on the same: when one of them is lost, the launcher stops the others, but they should say
       first who it was. */
    _Atomic bool is_in_company;
    const cvy_log_sink *log;
    sigset_t signals, before;
    pthread_t thread;
    _Atomic bool is_asked, is_closing;
    bool is_open;
};

/* Those that are to stop this process. */
void interrupt_signals(sigset_t *set);
/* To be called before other threads are started: they inherit what is blocked. The process ends with 130 at once and
   says so; checkpoints stay whole. */
cvy_status interrupt_open(struct interrupt *interrupt, const cvy_log_sink *log);
void interrupt_close(struct interrupt *interrupt);

#endif

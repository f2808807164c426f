/* Where the library's remarks go. The library never prints: its user gives a sink, or none. */
#ifndef CVY_BASE_LOG_H
#define CVY_BASE_LOG_H

#include <convoy/convoy.h>

/* Formats one line and hands it to the sink. log->write == NULL drops it. Thread-safe when the sink is. */
void cvy_log(const cvy_log_sink *log, cvy_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif

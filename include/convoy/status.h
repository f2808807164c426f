/* Errors, remarks and the version. See convoy.h. */
#ifndef CONVOY_STATUS_H
#define CONVOY_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CVY_VERSION "0.1.0"
#define CVY_API __attribute__((visibility("default")))

/* CVY_VERSION of the library that runs, which need not be that of this header. Local. */
CVY_API const char *cvy_version(void);

typedef enum {
    CVY_OK = 0,
    CVY_ERR_FAILED = 1,      /* anything without a code of its own */
    CVY_ERR_USAGE = 2,       /* the call or the command line is wrong */
    CVY_ERR_DATA = 3,        /* a file, an image, a label or a weight is wrong */
    CVY_ERR_LOST = 4,        /* a device or rank is lost or late */
    CVY_ERR_MEMORY = 5,      /* out of memory */
    CVY_ERR_IO = 6,          /* the operating system refused to read or write */
    CVY_ERR_NAN = 7,         /* a loss or weight is not finite */
    CVY_ERR_UNSUPPORTED = 8, /* right, but not available here */
    CVY_ERR_UNFIT = 9,       /* this machine, or what was asked of it, is found unfit */
    CVY_END = 100,           /* not an error: nothing left in this epoch */
    CVY_INTERRUPTED = 130,   /* stopped by the user after a checkpoint */
} cvy_status;

/* The newest error of this thread: one line, "what, where, what to do". "" when there was none. Success does not
   clear it, CVY_END does not set it. Valid until this thread's next error. Local. */
CVY_API const char *cvy_error(void);
/* The places that passed it on, "file:line < file:line", innermost first. Valid as long. Local. */
CVY_API const char *cvy_error_trace(void);
/* The exit code that a program should end with: 0 for CVY_OK and CVY_END, 2 wrong usage, 3 bad data, 4 a device or
   rank lost, 5 unfit (convoy doctor), 130 interrupted, else 1. Local. */
CVY_API int cvy_exit_code(cvy_status status);

typedef enum { CVY_LOG_INFO, CVY_LOG_WARNING } cvy_log_level;
/* Where remarks go: the library itself never prints. `write` gets one line without its end, valid during the call,
   and may be called from any thread, several at once; NULL: remarks are dropped. */
typedef struct {
    void (*write)(void *context, cvy_log_level level, const char *line);
    void *context; /* the user's */
} cvy_log_sink;

#ifdef __cplusplus
}
#endif
#endif

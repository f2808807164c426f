/* Errors. A fallible function returns a cvy_status; the text of the newest error of a thread lies in
   that thread's trace, which CVY_TRY extends with the place that passed it on.
   Invariant: the library never prints, exits or aborts because of its input. */
#ifndef CVY_BASE_STATUS_H
#define CVY_BASE_STATUS_H

#include <convoy/convoy.h>
#include <stddef.h>

/* Starts a new error in this thread: one line that says what, where, and what to do. Returns `code`.
   Use the macro CVY_FAIL, which adds the place. */
cvy_status cvy_fail_at(const char *file, int line, cvy_status code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#define CVY_FAIL(code, ...) cvy_failed((code), cvy_fail_at(__FILE__, __LINE__, (code), __VA_ARGS__))
/* Gives back `code` itself, so that compilers and analysers see that a failure is never CVY_OK. */
static inline cvy_status cvy_failed(cvy_status code, cvy_status recorded) {
    (void)recorded;
    return code;
}

/* Prefixes the newest error's message, e.g. with the file's name: "model.safetensors: header too long". */
cvy_status cvy_fail_prefix(cvy_status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a place to the trace of the newest error (CVY_TRY does it). */
void cvy_trace_add(const char *file, int line);

/* Passes an error up, adding file and line to its trace. */
#define CVY_TRY(call)                          \
    do {                                       \
        cvy_status cvy_try_status_ = (call);   \
        if (cvy_try_status_ != CVY_OK) {       \
            cvy_trace_add(__FILE__, __LINE__); \
            return cvy_try_status_;            \
        }                                      \
    } while (0)

/* The same for functions with one `out:` label and a local `status`. */
#define CVY_TRY_OUT(call)                      \
    do {                                       \
        status = (call);                       \
        if (status != CVY_OK) {                \
            cvy_trace_add(__FILE__, __LINE__); \
            goto out;                          \
        }                                      \
    } while (0)

/* Carries an error from one thread to another: the worker saves its own, the owner restores it. */
enum { CVY_ERROR_TEXT = 512 }; /* bytes of a message */
struct cvy_error {
    cvy_status code;
    char message[CVY_ERROR_TEXT];
    char trace[1024];
};
void cvy_error_save(struct cvy_error *into, cvy_status code);
cvy_status cvy_error_restore(const struct cvy_error *from); /* returns from->code */

/* Where a thread's newest error lies. A plugin has its own copy of this layer: it is given the program's source, so
   that an error which starts there is the program's newest one too. Local, before anything there fails. */
typedef struct cvy_error *cvy_error_source(void);
cvy_error_source *cvy_error_source_here(void);
void cvy_error_share(cvy_error_source *of_thread);

#endif

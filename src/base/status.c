/* The newest error of each thread, and what the public interface says about errors.
   Invariants: a message is one line of printable text, always terminated; a text that does not fit ends in
   "...", a trace that does not fit loses its outermost places. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct cvy_error *own_error(void) {
    static _Thread_local struct cvy_error error;
    return &error;
}

/* Changed once, in the copy of this file that a plugin has, before anything there can fail. */
static cvy_error_source *newest_error = own_error;

void cvy_error_share(cvy_error_source *of_thread) { newest_error = of_thread; }

cvy_error_source *cvy_error_source_here(void) { return newest_error; }

/* Puts the text on one line (file names may hold anything) and marks a cut one. `n` is what snprintf gave. */
static void make_line(char *text, size_t cap, int n) {
    if (n < 0) { /* an encoding error of the C library: say at least that */
        snprintf(text, cap, "unprintable message");
        return;
    }
    if ((size_t)n >= cap) {
        size_t end = cap - 4;
        while (end > 0 && ((unsigned char)text[end] & 0xC0) == 0x80) /* not inside a UTF-8 character */
            end--;
        memcpy(text + end, "...", 4);
    }
    for (char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7F)
            *c = '?';
    }
}

/* "src/graph/shape.c" for whatever path the compiler was called with. */
static const char *short_path(const char *file) {
    const char *found = NULL;
    for (const char *at = strstr(file, "/src/"); at; at = strstr(at + 1, "/src/"))
        found = at + 1;
    const char *slash = strrchr(file, '/');
    return found ? found : slash ? slash + 1 : file;
}

void cvy_trace_add(const char *file, int line) {
    struct cvy_error *newest = newest_error();
    size_t n = strlen(newest->trace), cap = sizeof newest->trace;
    int added = snprintf(newest->trace + n, cap - n, "%s%s:%d", n ? " < " : "", short_path(file), line);
    if (added < 0 || (size_t)added >= cap - n)
        newest->trace[n] = '\0';
}

cvy_status cvy_fail_at(const char *file, int line, cvy_status code, const char *format, ...) {
    struct cvy_error *newest = newest_error();
    char message[CVY_ERROR_TEXT]; /* apart, since an argument may be the present message */
    va_list args;
    va_start(args, format);
    int n = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    make_line(message, sizeof message, n);
    memcpy(newest->message, message, sizeof message);
    newest->code = code;
    newest->trace[0] = '\0';
    cvy_trace_add(file, line);
    return code;
}

cvy_status cvy_fail_prefix(cvy_status code, const char *format, ...) {
    struct cvy_error *newest = newest_error();
    char prefix[CVY_ERROR_TEXT], message[CVY_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    make_line(prefix, sizeof prefix, n);
    n = snprintf(message, sizeof message, "%s%s", prefix, newest->message);
    make_line(message, sizeof message, n);
    memcpy(newest->message, message, sizeof message);
    newest->code = code;
    return code;
}

void cvy_error_save(struct cvy_error *into, cvy_status code) {
    *into = *newest_error();
    into->code = code;
}

cvy_status cvy_error_restore(const struct cvy_error *from) {
    *newest_error() = *from;
    return from->code;
}

const char *cvy_error(void) { return newest_error()->message; }

const char *cvy_error_trace(void) { return newest_error()->trace; }

int cvy_exit_code(cvy_status status) {
    switch (status) {
    case CVY_OK:
    case CVY_END:
        return 0;
    case CVY_ERR_USAGE:
    case CVY_ERR_DATA:
    case CVY_ERR_LOST:
    case CVY_INTERRUPTED:
        return (int)status;
    case CVY_ERR_UNFIT:
        return 5;
    default:
        return 1;
    }
}

const char *cvy_version(void) { return CVY_VERSION; }

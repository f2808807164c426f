/* Growing text, number parsing, nearest name. */
#ifndef CVY_BASE_TEXT_H
#define CVY_BASE_TEXT_H

#include "base/file.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Zero-initialised is "". Appending never fails at the call: the first failure sticks in `status`,
   and cvy_text_take reports it. */
struct cvy_text {
    char *data; /* NUL-terminated once anything was appended */
    size_t n;
    size_t cap;
    cvy_status status;
};
void cvy_text_printf(struct cvy_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cvy_text_append(struct cvy_text *text, const char *bytes, size_t n);
/* Gives the text (never NULL on CVY_OK) to the caller, who frees it; `text` is empty afterwards. */
cvy_status cvy_text_take(struct cvy_text *text, char **out);
void cvy_text_free(struct cvy_text *text);

/* Well-formed UTF-8? File names need not be, JSON is. */
bool cvy_is_utf8(const char *text);
/* Appends a text from outside so that it is printable UTF-8: a control character, and a byte that is no part of a
   UTF-8 character, become \xNN. */
void cvy_text_escape(struct cvy_text *text, const char *from);
/* Copies a text as one line of printable UTF-8 that fits out[n_bytes], n_bytes >= 1: control characters become blanks,
   bytes that are no part of a character '?', and the end is cut between two characters. Returns the line's bytes.
   Allocates nothing. */
size_t cvy_text_line(char *out, size_t n_bytes, const char *from);

/* The whole text must be a number; else false. */
bool cvy_parse_i64(const char *text, int64_t *out);
bool cvy_parse_f64(const char *text, double *out); /* accepts nan and inf; the caller judges */

/* Bytes, not negative: "1500000", "500M", "1.5G"; K, M, G, T are powers of 1000, Ki, Mi, Gi, Ti of 1024. */
bool cvy_parse_bytes(const char *text, int64_t *out);

/* The candidate nearest to `name` by edit distance, or NULL when none is near (more than a third differs). */
const char *cvy_nearest(const char *name, const char *const *candidates, size_t n);
/* "; did you mean X" for the nearest one, or "": to stand behind the name in an error line. Returns `out`. */
enum { CVY_SUGGESTION = 80 };
const char *cvy_suggest(char out[CVY_SUGGESTION], const char *name, const char *const *candidates, size_t n);

#endif

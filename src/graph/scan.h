/* Reading our own line-based text forms (graphs, programs): lines, words, numbers, choices.
   A word ends at a blank or at one of , ( ) ; which are words themselves, except within [ ]. Lines that are
   blank or start with # are skipped. Words hold until the next line is taken. */
#ifndef CVY_GRAPH_SCAN_H
#define CVY_GRAPH_SCAN_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct cvy_scan {
    const char *rest; /* what follows the present line */
    int line;         /* number of the present line, from 1 */
    char *words;      /* the present line's words, each NUL-terminated, then an empty one */
    const char *at;   /* the next of them */
};

/* `text` must outlive the scan. */
cvy_status cvy_scan_open(struct cvy_scan *scan, const char *text);
void cvy_scan_close(struct cvy_scan *scan);
/* Goes to the next line with words in it; false at the end of the text. */
bool cvy_scan_line(struct cvy_scan *scan);

/* The next word, "" at the end of the line; peek leaves it there, peek_second looks one further. */
const char *cvy_scan_peek(const struct cvy_scan *scan);
const char *cvy_scan_peek_second(const struct cvy_scan *scan);
const char *cvy_scan_word(struct cvy_scan *scan);
/* Takes the next word if it is this one. */
bool cvy_scan_accept(struct cvy_scan *scan, const char *word);

/* These fail with CVY_ERR_DATA when the line reads otherwise; cvy_scan_fail adds "line N: " to any such error. */
cvy_status cvy_scan_expect(struct cvy_scan *scan, const char *word);
cvy_status cvy_scan_name(struct cvy_scan *scan, const char **out); /* a word that is no , ( ) ; */
cvy_status cvy_scan_int(struct cvy_scan *scan, int64_t min, int64_t max, int64_t *out);
cvy_status cvy_scan_i32(struct cvy_scan *scan, int32_t min, int32_t *out);
cvy_status cvy_scan_size(struct cvy_scan *scan, size_t *out);
cvy_status cvy_scan_choice(struct cvy_scan *scan, const char *const *names, int n, int *out);
cvy_status cvy_scan_end(struct cvy_scan *scan);
cvy_status cvy_scan_fail(const struct cvy_scan *scan, cvy_status status);

#endif

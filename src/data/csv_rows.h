/* Rows of comma-separated values (RFC 4180): fields may stand in double quotes, within which a quote is doubled. */
#ifndef CVY_DATA_CSV_ROWS_H
#define CVY_DATA_CSV_ROWS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { CVY_CSV_FIELDS = 64 };

struct cvy_csv {
    char *at, *end; /* what is left of the text, which is changed in place; *end is writable */
    int64_t line;   /* of the row that was read last, from 1 */
    int64_t next_line;
    int n;
    char *fields[CVY_CSV_FIELDS]; /* NUL-terminated, in the text */
};

/* Begins; text[n_bytes] is the NUL that cvy_read_file puts there. A byte order mark is skipped. */
void cvy_csv_begin(struct cvy_csv *csv, char *text, size_t n_bytes);

/* Reads the next row that is not empty. CVY_END after the last one. CVY_ERR_DATA: a quote that is never closed or
   stands within a field, a zero byte, more than CVY_CSV_FIELDS fields; the message begins with "line N". */
cvy_status cvy_csv_next(struct cvy_csv *csv);

#endif

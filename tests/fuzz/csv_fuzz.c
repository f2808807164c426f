/* Any text as comma-separated values: fields are texts within it, and the rows end. */
#include "data/csv_rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    struct cvy_csv csv;
    char *text = malloc(n_bytes + 1);
    if (!text)
        return 0;
    if (n_bytes)
        memcpy(text, bytes, n_bytes);
    text[n_bytes] = '\0';
    cvy_csv_begin(&csv, text, n_bytes);
    for (int64_t line = 0; cvy_csv_next(&csv) == CVY_OK; line = csv.line) {
        assert(csv.line > line && csv.n >= 1 && csv.n <= CVY_CSV_FIELDS);
        for (int k = 0; k < csv.n; k++) {
            assert(csv.fields[k] >= text && csv.fields[k] + strlen(csv.fields[k]) <= text + n_bytes);
            assert(k == 0 || csv.fields[k] > csv.fields[k - 1] + strlen(csv.fields[k - 1]));
        }
    }
    free(text);
    return 0;
}

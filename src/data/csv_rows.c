/* The reader of rows. Quotes are taken away in place: what is written lies never behind what was read. */
#include "data/csv_rows.h"

#include <string.h>

void cvy_csv_begin(struct cvy_csv *csv, char *text, size_t n_bytes) {
    static const char mark[] = "\xEF\xBB\xBF";
    *csv = (struct cvy_csv){.at = text, .end = text + n_bytes, .next_line = 1};
    if (n_bytes >= 3 && memcmp(text, mark, 3) == 0)
        csv->at += 3;
}

static cvy_status fail(const struct cvy_csv *csv, const char *what) {
    return CVY_FAIL(CVY_ERR_DATA, "line %lld: %s", (long long)csv->line, what);
}

/* A field from csv->at on, which is left on the character that ends it: a comma, the end of a line, or of the text. */
static cvy_status read_quoted(struct cvy_csv *csv) {
    char *to = csv->at, *from = csv->at + 1;
    csv->fields[csv->n++] = to;
    for (;; from++) {
        if (from >= csv->end)
            return fail(csv, "a quote is never closed");
        if (*from == '"' && from[1] == '"')
            from++;
        else if (*from == '"')
            break;
        else if (*from == '\0')
            return fail(csv, "a zero byte: this is no text");
        csv->next_line += *from == '\n';
        *to++ = *from;
    }
    csv->at = from + 1;
    if (csv->at < csv->end && !strchr(",\r\n", *csv->at))
        return fail(csv, "text follows a closing quote");
    *to = '\0'; /* at or before the closing quote */
    return CVY_OK;
}

static cvy_status read_plain(struct cvy_csv *csv) {
    csv->fields[csv->n++] = csv->at;
    while (csv->at < csv->end && !strchr(",\r\n", *csv->at)) {
        if (*csv->at == '"')
            return fail(csv, "a quote within a field: the whole field must be quoted");
        csv->at++;
    }
    return CVY_OK;
}

/* One row, of at least one field. */
static cvy_status read_row(struct cvy_csv *csv) {
    csv->line = csv->next_line;
    csv->n = 0;
    for (;;) {
        if (csv->n == CVY_CSV_FIELDS)
            return fail(csv, "more than 64 fields");
        CVY_TRY(csv->at < csv->end && *csv->at == '"' ? read_quoted(csv) : read_plain(csv));
        char *stop = csv->at, ends = *stop;
        *stop = '\0';
        if (stop >= csv->end)
            return CVY_OK;
        if (ends == '\0')
            return fail(csv, "a zero byte: this is no text");
        csv->at++;
        if (ends == ',')
            continue;
        if (ends == '\r' && csv->at < csv->end && *csv->at == '\n')
            csv->at++;
        csv->next_line++;
        return CVY_OK;
    }
}

cvy_status cvy_csv_next(struct cvy_csv *csv) {
    do {
        if (csv->at >= csv->end)
            return CVY_END;
        CVY_TRY(read_row(csv));
    } while (csv->n == 1 && csv->fields[0][0] == '\0');
    return CVY_OK;
}

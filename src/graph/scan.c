/* The scanner of scan.h: one line at a time is cut into words, in a buffer made once. */
#include "graph/scan.h"

#include "base/mem.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
static bool is_mark(char c) { return c == ',' || c == '(' || c == ')' || c == ';'; }

cvy_status cvy_scan_open(struct cvy_scan *scan, const char *text) {
    *scan = (struct cvy_scan){.rest = text};
    CVY_TRY(CVY_ALLOC(scan->words, 2 * strlen(text) + 2)); /* at worst every character is a word */
    scan->at = scan->words;
    return CVY_OK;
}

void cvy_scan_close(struct cvy_scan *scan) {
    free(scan->words);
    *scan = (struct cvy_scan){0};
}

/* Cuts [from, end) into scan->words. */
static void cut(struct cvy_scan *scan, const char *from, const char *end) {
    char *to = scan->words;
    while (from < end) {
        if (is_blank(*from)) {
            from++;
            continue;
        }
        bool in_brackets = false;
        const char *start = from;
        if (is_mark(*from))
            *to++ = *from++;
        else
            while (from < end && !is_blank(*from) && (in_brackets || !is_mark(*from))) {
                in_brackets = *from == '[' || (in_brackets && *from != ']');
                *to++ = *from++;
            }
        if (from > start)
            *to++ = '\0';
    }
    *to = '\0';
    scan->at = scan->words;
}

bool cvy_scan_line(struct cvy_scan *scan) {
    while (*scan->rest) {
        const char *start = scan->rest, *end = start + strcspn(start, "\n");
        scan->rest = *end ? end + 1 : end;
        scan->line++;
        cut(scan, start, end);
        if (*scan->at && *scan->at != '#')
            return true;
    }
    *scan->words = '\0';
    scan->at = scan->words;
    return false;
}

const char *cvy_scan_peek(const struct cvy_scan *scan) { return scan->at; }

const char *cvy_scan_peek_second(const struct cvy_scan *scan) {
    return *scan->at ? scan->at + strlen(scan->at) + 1 : scan->at;
}

const char *cvy_scan_word(struct cvy_scan *scan) {
    const char *word = scan->at;
    if (*word)
        scan->at += strlen(word) + 1;
    return word;
}

bool cvy_scan_accept(struct cvy_scan *scan, const char *word) {
    if (*scan->at == '\0' || strcmp(scan->at, word) != 0)
        return false;
    cvy_scan_word(scan);
    return true;
}

static cvy_status fail_expected(const struct cvy_scan *scan, const char *what) {
    if (*scan->at)
        return CVY_FAIL(CVY_ERR_DATA, "%s is expected where \"%.60s\" stands", what, scan->at);
    return CVY_FAIL(CVY_ERR_DATA, "%s is expected where the line ends", what);
}

cvy_status cvy_scan_expect(struct cvy_scan *scan, const char *word) {
    return cvy_scan_accept(scan, word) ? CVY_OK : fail_expected(scan, word);
}

cvy_status cvy_scan_name(struct cvy_scan *scan, const char **out) {
    if (*scan->at == '\0' || is_mark(*scan->at))
        return fail_expected(scan, "a name");
    *out = cvy_scan_word(scan);
    return CVY_OK;
}

cvy_status cvy_scan_int(struct cvy_scan *scan, int64_t min, int64_t max, int64_t *out) {
    int64_t value;
    if (!cvy_parse_i64(scan->at, &value))
        return fail_expected(scan, "a whole number");
    if (value < min || value > max)
        return CVY_FAIL(CVY_ERR_DATA, "%s must lie between %lld and %lld", scan->at, (long long)min,
                        (long long)max);
    cvy_scan_word(scan);
    *out = value;
    return CVY_OK;
}

cvy_status cvy_scan_i32(struct cvy_scan *scan, int32_t min, int32_t *out) {
    int64_t value;
    CVY_TRY(cvy_scan_int(scan, min, INT32_MAX, &value));
    *out = (int32_t)value;
    return CVY_OK;
}

cvy_status cvy_scan_size(struct cvy_scan *scan, size_t *out) {
    int64_t value;
    CVY_TRY(cvy_scan_int(scan, 0, INT64_MAX, &value));
    *out = (size_t)value;
    return CVY_OK;
}

cvy_status cvy_scan_choice(struct cvy_scan *scan, const char *const *names, int n, int *out) {
    for (int i = 0; i < n; i++) {
        if (cvy_scan_accept(scan, names[i])) {
            *out = i;
            return CVY_OK;
        }
    }
    struct cvy_text all = {0};
    for (int i = 0; i < n; i++)
        cvy_text_printf(&all, "%s%s", i == 0 ? "" : i < n - 1 ? ", " : " or ", names[i]);
    cvy_status status = all.status == CVY_OK ? fail_expected(scan, all.data) : all.status;
    cvy_text_free(&all);
    return status;
}

cvy_status cvy_scan_end(struct cvy_scan *scan) {
    return *scan->at == '\0' ? CVY_OK : fail_expected(scan, "the end of the line");
}

cvy_status cvy_scan_fail(const struct cvy_scan *scan, cvy_status status) {
    return cvy_fail_prefix(status, "line %d: ", scan->line);
}

/* Growing text, UTF-8, numbers from text, and the nearest name for a mistyped one. */
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for n more bytes and the terminator; a failure sticks. */
static bool text_reserve(struct cvy_text *text, size_t n) {
    if (text->status != CVY_OK)
        return false;
    if (text->data && n < text->cap - text->n)
        return true;
    size_t grown = text->cap ? text->cap : 64;
    while (grown <= SIZE_MAX / 2 && grown - text->n <= n)
        grown *= 2;
    char *data = grown - text->n > n ? realloc(text->data, grown) : NULL;
    if (!data) {
        text->status = CVY_FAIL(CVY_ERR_MEMORY, "out of memory: no room for %zu bytes of text", n);
        return false;
    }
    text->data = data;
    text->cap = grown;
    return true;
}

void cvy_text_append(struct cvy_text *text, const char *bytes, size_t n) {
    if (!text_reserve(text, n))
        return;
    if (n)
        memcpy(text->data + text->n, bytes, n);
    text->n += n;
    text->data[text->n] = '\0';
}

void cvy_text_printf(struct cvy_text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0) {
        if (text->status == CVY_OK)
            text->status = CVY_FAIL(CVY_ERR_FAILED, "text cannot be formatted: %s", format);
        return;
    }
    if (!text_reserve(text, (size_t)n))
        return;
    va_start(args, format);
    vsnprintf(text->data + text->n, (size_t)n + 1, format, args);
    va_end(args);
    text->n += (size_t)n;
}

cvy_status cvy_text_take(struct cvy_text *text, char **out) {
    cvy_text_append(text, "", 0); /* an empty text is a text too */
    cvy_status status = text->status;
    if (status == CVY_OK) {
        *out = text->data;
        text->data = NULL;
    }
    cvy_text_free(text);
    return status;
}

void cvy_text_free(struct cvy_text *text) {
    free(text->data);
    *text = (struct cvy_text){0};
}

/* Bytes of the UTF-8 character at `text`, which is not the end; 0: there is none. Longer forms than needed,
   surrogates and what lies above U+10FFFF are none. */
static size_t utf8_length(const unsigned char *text) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = text[0] < 0x80 ? 1 : text[0] < 0xC0 ? 0 : text[0] < 0xE0 ? 2 : text[0] < 0xF0 ? 3 : 4;
    if (n <= 1)
        return n;
    uint32_t code = text[0] & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((text[i] & 0xC0) != 0x80) /* the end is none either */
            return 0;
        code = code << 6 | (text[i] & 0x3Fu);
    }
    bool is_surrogate = code >= 0xD800 && code < 0xE000;
    return text[0] >= 0xF8 || code < least[n] || code > 0x10FFFF || is_surrogate ? 0 : n;
}

bool cvy_is_utf8(const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        size_t n = utf8_length(at);
        if (n == 0)
            return false;
        at += n;
    }
    return true;
}

static bool is_control_character(const unsigned char *at) {
    return at[0] < ' ' || at[0] == 0x7F || (at[0] == 0xC2 && at[1] < 0xA0);
}

void cvy_text_escape(struct cvy_text *text, const char *from) {
    const unsigned char *at = (const unsigned char *)from;
    while (*at) {
        size_t n = utf8_length(at);
        bool is_control = is_control_character(at);
        if (n && !is_control)
            cvy_text_append(text, (const char *)at, n);
        for (size_t i = 0; i < (n ? n : 1) && (!n || is_control); i++)
            cvy_text_printf(text, "\\x%02X", at[i]);
        at += n ? n : 1;
    }
}

size_t cvy_text_line(char *out, size_t n_bytes, const char *from) {
    const unsigned char *at = (const unsigned char *)from;
    size_t n_out = 0;
    while (*at) {
        size_t n = utf8_length(at);
        const char *character = n == 0 ? "?" : is_control_character(at) ? " " : (const char *)at;
        size_t n_character = character == (const char *)at ? n : 1;
        if (n_out + n_character >= n_bytes)
            break;
        memcpy(out + n_out, character, n_character);
        n_out += n_character;
        at += n ? n : 1;
    }
    out[n_out] = '\0';
    return n_out;
}

/* strtoX skip leading space; a number of ours has none. */
static bool starts_number(const char *text) { return *text && !isspace((unsigned char)*text); }

bool cvy_parse_i64(const char *text, int64_t *out) {
    if (!starts_number(text))
        return false;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end)
        return false;
    *out = value;
    return true;
}

bool cvy_parse_f64(const char *text, double *out) {
    if (!starts_number(text))
        return false;
    char *end;
    double value = strtod(text, &end); /* too large gives inf, too small 0: both are answers */
    if (end == text || *end)
        return false;
    *out = value;
    return true;
}

bool cvy_parse_bytes(const char *text, int64_t *out) {
    static const char units[] = "KMGT";
    char *end;
    double value = strtod(text, &end);
    if (end == text || end != text + strspn(text, "0123456789.")) /* no sign, no exponent, no nan */
        return false;
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (unit) {
        double base = end[1] == 'i' ? 1024 : 1000;
        for (; unit >= units; unit--)
            value *= base;
        end += base == 1024 ? 2 : 1;
    }
    if (*end || !(value < 9e18))
        return false;
    *out = (int64_t)value;
    return true;
}

enum { MAX_NAME = 64 };

/* Levenshtein's distance, where two swapped neighbours count as one error: the commonest slip of all. Row by row:
   row[j] = distance of the first i letters of a to the first j of b; above, above2: the same for i - 1, i - 2. */
static size_t edit_distance(const char *a, size_t na, const char *b, size_t nb) {
    size_t rows[3][MAX_NAME + 1];
    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && above2[j - 2] + 1 < best)
                best = above2[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[na % 3][nb];
}

const char *cvy_nearest(const char *name, const char *const *candidates, size_t n) {
    const char *best = NULL;
    size_t best_distance = SIZE_MAX, n_name = strlen(name);
    for (size_t i = 0; i < n && n_name <= MAX_NAME; i++) {
        size_t n_candidate = strlen(candidates[i]);
        if (n_candidate > MAX_NAME)
            continue;
        size_t distance = edit_distance(name, n_name, candidates[i], n_candidate);
        size_t longer = n_name > n_candidate ? n_name : n_candidate;
        if (distance * 3 <= longer && distance < best_distance) {
            best = candidates[i];
            best_distance = distance;
        }
    }
    return best;
}

const char *cvy_suggest(char out[CVY_SUGGESTION], const char *name, const char *const *candidates, size_t n) {
    const char *nearest = cvy_nearest(name, candidates, n);
    snprintf(out, CVY_SUGGESTION, "%s%s", nearest ? "; did you mean " : "", nearest ? nearest : "");
    return out;
}

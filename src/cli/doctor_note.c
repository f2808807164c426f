/* See doctor.h: findings, and small files of the system. */
#include "cli/doctor.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void doctor_say(struct doctor *d, enum doctor_state state, const char *mend, const char *format, ...) {
    char line[1024], *text = NULL, *way = NULL;
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    cvy_status status = cvy_pool_strdup(&d->pool, line, &text);
    if (status == CVY_OK && mend)
        status = cvy_pool_strdup(&d->pool, mend, &way);
    struct doctor_finding finding = {.check = d->check, .state = state, .text = text, .mend = way};
    if (status == CVY_OK)
        status = cvy_vec_push(&d->findings, finding);
    d->status = d->status ? d->status : status;
}

void doctor_measured(struct doctor *d, const char *name, double value) {
    if (!d->measured)
        d->measured = json_object();
    if (json_object_set_new(d->measured, name, json_real(value)) != 0 && d->status == CVY_OK)
        d->status = CVY_FAIL(CVY_ERR_MEMORY, "no memory for what was measured");
}

bool doctor_path(const struct doctor *d, const char *path, char *out, size_t n_bytes) {
    return snprintf(out, n_bytes, "%s%s", d->root, path) < (int)n_bytes;
}

bool doctor_read(const struct doctor *d, const char *path, char *out, size_t n_bytes) {
    char full[PATH_MAX];
    FILE *in = doctor_path(d, path, full, sizeof full) ? fopen(full, "r") : NULL;
    if (!in)
        return false;
    size_t n = fread(out, 1, n_bytes - 1, in);
    out[n] = 0;
    bool is_read = !ferror(in);
    fclose(in);
    return is_read;
}

int64_t doctor_number(const struct doctor *d, const char *path, int64_t otherwise) {
    char text[64];
    int64_t number;
    if (!doctor_read(d, path, text, sizeof text))
        return otherwise;
    text[strcspn(text, " \n")] = 0;
    return cvy_parse_i64(text, &number) ? number : otherwise;
}

bool doctor_field(const char *text, const char *key, char *out, size_t n_bytes) {
    size_t n_key = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *at = line + n_key;
        if (strncmp(line, key, n_key) != 0 || !strchr(" \t:", *at) || !*at)
            continue;
        at += strspn(at, " \t:");
        snprintf(out, n_bytes, "%.*s", (int)strcspn(at, "\n"), at);
        return true;
    }
    return false;
}

bool doctor_has_word(const char *text, const char *word) {
    size_t n = strlen(word);
    for (const char *at = text; *(at += strspn(at, " \t\n")); at += strcspn(at, " \t\n"))
        if (strcspn(at, " \t\n") == n && strncmp(at, word, n) == 0)
            return true;
    return false;
}

const char *doctor_bytes(char out[DOCTOR_BYTES], double n_bytes) {
    if (n_bytes <= 0)
        snprintf(out, DOCTOR_BYTES, "unlimited");
    else if (n_bytes < 1e9)
        snprintf(out, DOCTOR_BYTES, "%.0f MB", n_bytes / 1e6);
    else
        snprintf(out, DOCTOR_BYTES, "%.1f GB", n_bytes / 1e9);
    return out;
}

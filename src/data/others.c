/* See others.h. */
#include "data/others.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const suffixes[CVY_N_OTHERS] = {".bmp",  ".gif",  ".tif", ".tiff", ".heic",
                                                   ".heif", ".avif", ".jp2", ".jxl"};

void cvy_others_count(struct cvy_others *others, const char *name) {
    const char *dot = strrchr(name, '.');
    for (int k = 0; dot && k < CVY_N_OTHERS; k++)
        others->n[k] += strcasecmp(dot, suffixes[k]) == 0;
}

void cvy_others_add(struct cvy_others *to, const struct cvy_others *more) {
    for (int k = 0; k < CVY_N_OTHERS; k++)
        to->n[k] += more->n[k];
}

uint64_t cvy_others_total(const struct cvy_others *others) {
    uint64_t n = 0;
    for (int k = 0; k < CVY_N_OTHERS; k++)
        n += others->n[k];
    return n;
}

cvy_status cvy_others_warn(const struct cvy_others *others, const char *where, const cvy_log_sink *log) {
    const uint64_t n = cvy_others_total(others);
    struct cvy_text list = {0};
    char *text;
    if (n == 0)
        return CVY_OK;
    for (int k = 0; k < CVY_N_OTHERS; k++)
        if (others->n[k] > 0)
            cvy_text_printf(&list, "%s%llu %s", list.n ? ", " : "", (unsigned long long)others->n[k],
                            suffixes[k]);
    CVY_TRY(cvy_text_take(&list, &text));
    cvy_log(log, CVY_LOG_WARNING,
            "%s: %llu image%s of formats that are not read %s left out: %s: convert %s to JPEG, PNG or WebP",
            where, (unsigned long long)n, n == 1 ? "" : "s", n == 1 ? "is" : "are", text,
            n == 1 ? "it" : "them");
    free(text);
    return CVY_OK;
}

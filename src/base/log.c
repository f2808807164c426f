/* Formats remarks for the user's sink: a remark longer than the line is cut, names in it are made printable. */
#include "base/log.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

void cvy_log(const cvy_log_sink *log, cvy_log_level level, const char *format, ...) {
    if (!log || !log->write)
        return;
    char line[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n < 0)
        return;
    struct cvy_text text = {0};
    cvy_text_escape(&text, line);
    if (text.status == CVY_OK)
        log->write(log->context, level, text.data ? text.data : "");
    cvy_text_free(&text);
}

/* The help text of flag tables: two columns, the second wrapped. */
#include "cli/flags.h"

#include <math.h>
#include <string.h>

enum { COLUMN = 32, WIDTH = 100 };

static const char *value_name(const struct flag *flag) {
    if (flag->value_name)
        return flag->value_name;
    switch (flag->type) {
    case FLAG_TEXT:
        return flag->choices ? "NAME" : "TEXT";
    case FLAG_INT:
        return "N";
    case FLAG_FLOAT:
        return "X";
    case FLAG_BYTES:
        return "SIZE";
    case FLAG_SIZE:
        return "HxW";
    case FLAG_SHAPE:
        return "CxHxW";
    case FLAG_CHANNELS:
        return "R,G,B";
    case FLAG_SWITCH:
        break;
    }
    return "";
}

/* "  -b, --batch-size N", padded to the second column. */
static void print_names(const struct flag *flag, struct cvy_text *out) {
    struct cvy_text left = {0};
    if (flag->letter)
        cvy_text_printf(&left, "  -%c, ", flag->letter);
    else
        cvy_text_printf(&left, "      ");
    /* what is off anyway needs no denial */
    bool is_deniable = flag->type == FLAG_SWITCH && !(flag->initial && !strcmp(flag->initial, "false"));
    cvy_text_printf(&left, "--%s%s", is_deniable ? "[no-]" : "", flag->name);
    if (flag->alias)
        cvy_text_printf(&left, ", --%s", flag->alias);
    if (flag->type != FLAG_SWITCH)
        cvy_text_printf(&left, " %s", value_name(flag));
    if (left.n + 2 <= COLUMN)
        cvy_text_printf(out, "%-*s", COLUMN, left.data ? left.data : "");
    else
        cvy_text_printf(out, "%s\n%*s", left.data ? left.data : "", COLUMN, "");
    cvy_text_free(&left);
}

/* Words of `text` into the second column, which the cursor stands at. */
static void print_wrapped(const char *text, struct cvy_text *out) {
    size_t used = COLUMN;
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, " ");
        if (used > COLUMN && used + 1 + n > WIDTH) {
            cvy_text_printf(out, "\n%*s", COLUMN, "");
            used = COLUMN;
        }
        if (used > COLUMN) {
            cvy_text_append(out, " ", 1);
            used++;
        }
        cvy_text_append(out, at, n);
        used += n;
        at += n;
        at += strspn(at, " ");
    }
    cvy_text_append(out, "\n", 1);
}

static void print_flag(const struct flag *flag, struct cvy_text *out) {
    struct cvy_text help = {0};
    cvy_text_printf(&help, "%s", flag->help);
    if (flag->choices) {
        struct flag_names names = {.n = 0};
        flag->choices(&names);
        for (size_t i = 0; i < names.n; i++)
            cvy_text_printf(&help, "%s%s", i ? ", " : ": ", names.name[i]);
    }
    bool is_ranged = flag->min != 0 || flag->max != 0;
    if (is_ranged && flag->max < INFINITY)
        cvy_text_printf(&help, " (%.10g to %.10g)", flag->min, flag->max);
    if (flag->initial && flag->type != FLAG_SWITCH)
        cvy_text_printf(&help, " [%s]", flag->initial);
    print_names(flag, out);
    print_wrapped(help.data ? help.data : "", out);
    cvy_text_free(&help);
}

void flags_help(const struct flag_group *const *groups, struct cvy_text *out) {
    for (; *groups; groups++) {
        cvy_text_printf(out, "\n%s:\n", (*groups)->title);
        for (size_t i = 0; i < (*groups)->n; i++)
            print_flag(&(*groups)->flags[i], out);
    }
}

/* The table of subcommands, and what they share. */
#include "cli/command.h"
#include "engine/world.h"

#include <stdio.h>
#include <stdlib.h>

#define CVY_COMMAND(name) extern const struct command command_##name;
#include "cli/commands.def"
#undef CVY_COMMAND

static const struct command *const table[] = {
#define CVY_COMMAND(name) &command_##name,
#include "cli/commands.def"
#undef CVY_COMMAND
};

const struct command *const *command_table(size_t *n) {
    *n = sizeof table / sizeof *table;
    return table;
}

bool command_has_flag(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct flag_values values = {.groups = table[i]->groups};
        if (flags_find(&values, name))
            return true;
    }
    return false;
}

cvy_status command_no_rest(const struct flag_values *values) {
    if (values->rest.n)
        return CVY_FAIL(CVY_ERR_USAGE, "'%s': no such argument; flags begin with --", values->rest.data[0]);
    return CVY_OK;
}

cvy_status command_print_json(json_t *json) {
    char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(json);
    if (!text)
        return CVY_FAIL(CVY_ERR_MEMORY, "no memory to print the result");
    puts(text);
    free(text);
    return CVY_OK;
}

cvy_status command_agree(const struct flag_values *values, cvy_status status) {
    const struct options *o = values->options;
    struct cvy_text text = {0};
    CVY_TRY(cvy_world_meet_failure(o->world, status, "the flags"));
    flags_print_common(values, &text);
    status = text.status;
    if (status == CVY_OK)
        status = cvy_world_agree(o->world, text.data ? text.data : "", "flags");
    cvy_text_free(&text);
    return status;
}

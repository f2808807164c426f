/* See replay_json.h. */
#include "engine/replay_json.h"

#include "graph/graph_text.h"

#include <math.h>
#include <string.h>

static int find_name(const char *name, const char *const *names, int n) {
    for (int k = 0; name && k < n; k++) {
        if (strcmp(name, names[k]) == 0)
            return k;
    }
    return -1;
}

static bool read_instruction(const json_t *from, struct cvy_replay_instr *out) {
    const char *names[CVY_N_INSTR];
    for (int k = 0; k < CVY_N_INSTR; k++)
        names[k] = cvy_instr_name((enum cvy_instr_kind)k);
    const int kind = find_name(json_string_value(json_object_get(from, "do")), names, CVY_N_INSTR);
    const int phase =
        find_name(json_string_value(json_object_get(from, "phase")), cvy_phase_names, CVY_PHASE_REFRESH + 1);
    const double us = json_number_value(json_object_get(from, "us"));
    if (kind < 0 || phase < 0 || !isfinite(us) || us < 0)
        return false;
    *out = (struct cvy_replay_instr){.kind = (enum cvy_instr_kind)kind,
                                     .phase = (enum cvy_phase)phase,
                                     .shard = (int32_t)json_integer_value(json_object_get(from, "shard")),
                                     .part = (int32_t)json_integer_value(json_object_get(from, "part")),
                                     .bucket = (int32_t)json_integer_value(json_object_get(from, "bucket")),
                                     .own_us = us,
                                     .posts = -1,
                                     .awaits = -1};
    return true;
}

cvy_status cvy_replay_read_instructions(const json_t *list, struct cvy_replay_device *out) {
    for (size_t k = 0; k < json_array_size(list); k++) {
        struct cvy_replay_instr instr;
        if (!read_instruction(json_array_get(list, k), &instr))
            return CVY_FAIL(CVY_ERR_DATA, "instruction %zu is none that this version knows", k);
        CVY_TRY(cvy_vec_push(&out->instrs, instr));
    }
    return CVY_OK;
}

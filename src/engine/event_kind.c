/* See event_kind.h. */
#include "engine/event_kind.h"

#include <string.h>

const char *const cvy_kind_names[CVY_N_KINDS] = {
    [CVY_KIND_FORWARD] = "forward", [CVY_KIND_BACKWARD] = "backward", [CVY_KIND_UPDATE] = "update",
    [CVY_KIND_REFRESH] = "refresh", [CVY_KIND_ADD] = "add",           [CVY_KIND_PARAMETERS] = "parameters",
    [CVY_KIND_REDUCE] = "reduce",   [CVY_KIND_SEND] = "send",         [CVY_KIND_IDLE] = "idle",
    [CVY_KIND_HOST] = "host",
};

static enum cvy_event_kind of_phase(enum cvy_phase phase) {
    switch (phase) {
    case CVY_PHASE_FORWARD:
        return CVY_KIND_FORWARD;
    case CVY_PHASE_BACKWARD:
        return CVY_KIND_BACKWARD;
    case CVY_PHASE_REFRESH:
        return CVY_KIND_REFRESH;
    default:
        return CVY_KIND_UPDATE;
    }
}

static const enum cvy_event_kind instructions[CVY_N_INSTR] = {
    [CVY_I_LOAD] = CVY_KIND_HOST,       [CVY_I_EXCHANGE] = CVY_KIND_REDUCE,
    [CVY_I_ADD] = CVY_KIND_ADD,         [CVY_I_SEND] = CVY_KIND_SEND,
    [CVY_I_RECV] = CVY_KIND_IDLE,       [CVY_I_REDUCE] = CVY_KIND_HOST,
    [CVY_I_WAIT] = CVY_KIND_REDUCE,     [CVY_I_ACCUMULATE] = CVY_KIND_ADD,
    [CVY_I_CHECK] = CVY_KIND_IDLE,      [CVY_I_FINITE] = CVY_KIND_IDLE,
    [CVY_I_CLIP] = CVY_KIND_UPDATE,     [CVY_I_UPDATE] = CVY_KIND_UPDATE,
    [CVY_I_RESULT] = CVY_KIND_HOST,     [CVY_I_BROADCAST] = CVY_KIND_PARAMETERS,
    [CVY_I_REFRESH] = CVY_KIND_REFRESH,
};

enum cvy_event_kind cvy_kind_of_instr(enum cvy_instr_kind kind, enum cvy_phase phase) {
    return kind == CVY_I_RUN ? of_phase(phase) : instructions[kind];
}

enum cvy_event_kind cvy_kind_of_event(const struct cvy_event *e) {
    if (e->name)
        return of_phase(e->phase);
    for (int i = 0; i < CVY_N_INSTR; i++) {
        if (strcmp(e->what, cvy_instr_name((enum cvy_instr_kind)i)) == 0)
            return cvy_kind_of_instr((enum cvy_instr_kind)i, e->phase);
    }
    return of_phase(e->phase); /* a stretch, launched as one graph */
}

bool cvy_kind_is_talk(enum cvy_event_kind kind) {
    return kind == CVY_KIND_PARAMETERS || kind == CVY_KIND_REDUCE || kind == CVY_KIND_SEND ||
           kind == CVY_KIND_IDLE;
}

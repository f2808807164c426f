/* A replay's instructions, as profile.json has them. */
#ifndef CVY_ENGINE_REPLAY_JSON_H
#define CVY_ENGINE_REPLAY_JSON_H

#include "engine/replay.h"

#include <jansson.h>

/* Appends a device's instructions to it; "us" may be missing: 0. CVY_ERR_DATA. Local. */
cvy_status cvy_replay_read_instructions(const json_t *list, struct cvy_replay_device *out);

#endif

/* mp: the layers lie on different devices, one stage each, and one shard at a time passes through them: for models
   that do not fit one device. All but one device wait; `pipeline` lets them work. */
#include "strategy/strategy.h"

static cvy_status mesh(int32_t n_devices, const char *asked, struct cvy_mesh *out) {
    CVY_TRY(cvy_check_no_mesh("mp", asked));
    if (n_devices < 2)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "strategy mp puts a stage on each device and needs 2 or more: add devices, or "
                        "take --strategy single");
    *out = (struct cvy_mesh){1, n_devices};
    return CVY_OK;
}

static cvy_status schedule(const struct cvy_strategy_input *input, struct cvy_program *out) {
    return cvy_schedule_write(input, (struct cvy_order){.n_slots = 1, .n_ahead = 1}, out);
}

const struct cvy_strategy cvy_strategy_mp = {
    .name = "mp",
    .help = "a stage of the model on each device, one shard in flight",
    .mesh = mesh,
    .check = cvy_check_shards,
    .schedule = schedule,
};

/* single: one device; the shards run one after the other, which is what others call gradient accumulation. */
#include "strategy/strategy.h"

static cvy_status mesh(int32_t n_devices, const char *asked, struct cvy_mesh *out) {
    CVY_TRY(cvy_check_no_mesh("single", asked));
    if (n_devices != 1)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "strategy single runs on one device, not on %d: name one, or take --strategy ddp",
                        n_devices);
    *out = (struct cvy_mesh){1, 1};
    return CVY_OK;
}

static cvy_status schedule(const struct cvy_strategy_input *input, struct cvy_program *out) {
    return cvy_schedule_write(input, (struct cvy_order){.n_slots = 1, .n_ahead = 1}, out);
}

const struct cvy_strategy cvy_strategy_single = {
    .name = "single",
    .help = "one device; shards run one after the other",
    .is_in_layers = true,
    .mesh = mesh,
    .check = cvy_check_shards,
    .schedule = schedule,
};

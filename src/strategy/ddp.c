/* ddp: one replica per device, each with its share of the batch; buckets of gradients are all-reduced while the
   backward pass goes on; every replica then makes the same update. */
#include "strategy/strategy.h"

static cvy_status mesh(int32_t n_devices, const char *asked, struct cvy_mesh *out) {
    CVY_TRY(cvy_check_no_mesh("ddp", asked));
    *out = (struct cvy_mesh){n_devices, 1};
    return CVY_OK;
}

static cvy_status schedule(const struct cvy_strategy_input *input, struct cvy_program *out) {
    return cvy_schedule_write(input, (struct cvy_order){.n_slots = 1, .n_ahead = 1}, out);
}

const struct cvy_strategy cvy_strategy_ddp = {
    .name = "ddp",
    .help = "a replica on each device; gradients are all-reduced during the backward pass",
    .is_in_layers = true,
    .mesh = mesh,
    .check = cvy_check_shards,
    .schedule = schedule,
};

/* dp: as nn.DataParallel. The parameters live on the first device, the master. Each step it broadcasts them, every
   device runs its share of the batch, the gradients are summed on the master, and the master updates. `ddp` does
   the same work with less traffic and with all devices updating. */
#include "strategy/strategy.h"

static cvy_status mesh(int32_t n_devices, const char *asked, struct cvy_mesh *out) {
    CVY_TRY(cvy_check_no_mesh("dp", asked));
    *out = (struct cvy_mesh){n_devices, 1};
    return CVY_OK;
}

static cvy_status schedule(const struct cvy_strategy_input *input, struct cvy_program *out) {
    return cvy_schedule_write(input, (struct cvy_order){.n_slots = 1, .n_ahead = 1, .is_on_master = true},
                              out);
}

const struct cvy_strategy cvy_strategy_dp = {
    .name = "dp",
    .is_one_process = true,
    .help = "as DataParallel: the first device keeps the parameters, the others get them each step",
    .is_in_layers = true,
    .mesh = mesh,
    .check = cvy_check_shards,
    .schedule = schedule,
};

/* ddp: one replica per device, each with its share of the batch; buckets of gradients are all-reduced while the
   backward pass goes on; every replica then makes the same update. */
#include "strategy/strategy.h"

static cvy_status check(const struct cvy_strategy_input *input) {
    if (input->n_shards < input->n_devices)
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "%d shards cannot occupy %d devices: raise --shards to %d or more, or take fewer devices",
            input->n_shards, input->n_devices, input->n_devices);
    return CVY_OK;
}

static cvy_status schedule(const struct cvy_strategy_input *input, struct cvy_program *out) {
    return cvy_schedule_replica(input, input->n_devices > 1, out);
}

const struct cvy_strategy cvy_strategy_ddp = {
    .name = "ddp",
    .help = "a replica on each device; gradients are all-reduced during the backward pass",
    .check = check,
    .schedule = schedule,
};

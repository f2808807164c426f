/* single: one device; the shards run one after the other, which is what others call gradient accumulation. */
#include "strategy/strategy.h"

static cvy_status check(const struct cvy_strategy_input *input) {
    if (input->n_devices != 1)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "strategy single runs on one device, not on %d: name one, or take --strategy ddp",
                        input->n_devices);
    return CVY_OK;
}

static cvy_status schedule(const struct cvy_strategy_input *input, struct cvy_program *out) {
    return cvy_schedule_replica(input, false, out);
}

const struct cvy_strategy cvy_strategy_single = {
    .name = "single",
    .help = "one device; shards run one after the other",
    .check = check,
    .schedule = schedule,
};

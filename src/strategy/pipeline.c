/* pipeline: as mp, with the shards as micro-batches that follow each other through the stages.
   gpipe: all forward passes, then all backward ones: S shards in flight.
   1f1b: a stage runs ahead by its distance to the last one, then alternates: at most P in flight. */
#include "strategy/pipeline.h"

#include <string.h>

static cvy_status mesh(int32_t n_devices, const char *asked, struct cvy_mesh *out) {
    CVY_TRY(cvy_check_no_mesh("pipeline", asked));
    if (n_devices < 2)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "strategy pipeline puts a stage on each device and needs 2 or more: add "
                        "devices, or take --strategy single");
    *out = (struct cvy_mesh){1, n_devices};
    return CVY_OK;
}

cvy_status cvy_pipeline_schedule(const struct cvy_strategy_input *input, struct cvy_program *out) {
    int32_t stage = input->device % input->mesh.pipe, n = input->n_shards;
    struct cvy_order order = {.n_slots = n, .n_ahead = n};
    if (strcmp(input->schedule, "1f1b") == 0)
        order.n_slots = order.n_ahead = input->mesh.pipe - stage;
    return cvy_schedule_write(input, order, out);
}

const struct cvy_strategy cvy_strategy_pipeline = {
    .name = "pipeline",
    .help = "a stage of the model on each device, shards following each other",
    .has_schedules = true,
    .mesh = mesh,
    .check = cvy_check_shards,
    .schedule = cvy_pipeline_schedule,
};

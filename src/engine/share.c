/* share: which process works on what, and whether all of them mean the same. Devices are numbered over all processes,
   rank by rank, so that those of one process stand together. */
#include "engine/plan.h"
#include "engine/world.h"

#include "data/loader.h"
#include "graph/graph_text.h"
#include "rt/tree.h"

int32_t cvy_plan_process(const struct cvy_plan *plan, int32_t device) { return device / plan->team.n; }

/* The shards that device k of this process works on, or has a stage's part in: *n of them from *first on. */
static void device_shards(const struct cvy_plan *plan, int k, int32_t *first, int32_t *n) {
    cvy_tree_shards((int32_t)plan->options.shards, plan->mesh.data,
                    (plan->first_device + k) / plan->mesh.pipe, first, n);
}

/* A process's devices stand together, and so do their shards. */
cvy_status cvy_plan_share(const cvy_plan *plan, cvy_loader *loader) {
    int32_t first, last, n;
    device_shards(plan, 0, &first, &n);
    device_shards(plan, plan->team.n - 1, &last, &n);
    cvy_loader_set_share(loader, plan->options.shards, first, last + n - first);
    return CVY_OK;
}

cvy_status cvy_plan_images(const cvy_plan *plan, int k, int64_t n, int64_t *first, int64_t *count) {
    if (k < 0 || k >= plan->team.n)
        return CVY_FAIL(CVY_ERR_USAGE, "device %d of %d: they are counted from 0", k, plan->team.n);
    if (n < 0)
        return CVY_FAIL(CVY_ERR_USAGE, "a batch of %lld images: it needs 0 or more", (long long)n);
    int32_t first_shard, n_shards;
    int64_t total = plan->options.shards;
    device_shards(plan, k, &first_shard, &n_shards);
    *first = cvy_shard_first(n, total, first_shard);
    *count = cvy_shard_first(n, total, first_shard + n_shards) - *first;
    return CVY_OK;
}

/* ---- agreement --------------------------------------------------------------------------------------- */

static const char *or_none(const char *text) { return text ? text : "none"; }

/* All that decides what a step computes or how processes meet. */
static void print_options(const struct cvy_plan *plan, struct cvy_text *out) {
    const cvy_plan_options *o = &plan->options;
    cvy_text_printf(out, "batch size %lld\n", (long long)o->batch_size);
    cvy_text_printf(out, "batches of an update: up to %lld\n", (long long)o->accumulate);
    cvy_text_printf(out, "seed %llu\n", (unsigned long long)o->seed);
    cvy_text_printf(out, "%d devices in each process\n", plan->team.n);
    cvy_text_printf(out, "backend %s", plan->backend->name);
    if (plan->backend->kind) {
        cvy_text_printf(out, ": ");
        plan->backend->kind(out);
    }
    cvy_text_printf(out, "\n");
    cvy_text_printf(out, "strategy %s, mesh data=%d,pipe=%d, schedule %s\n", plan->strategy->name,
                    plan->mesh.data, plan->mesh.pipe, o->schedule);
    cvy_text_printf(out, "%lld shards\n", (long long)o->shards);
    cvy_text_printf(out, "batch-norm over %s\n", o->sync_bn ? "all shards" : "a shard");
    cvy_text_printf(out, "%d threads per device\n", o->threads_per_device);
    cvy_text_printf(out, "convolution algorithms %s%s%s\n", o->conv_algo, o->tf32 ? ", TF32" : "",
                    o->nondeterministic ? ", not deterministic" : "");
    cvy_text_printf(out, "gradients added in %s\n",
                    o->fast_reduce ? "the network's order" : "the tree over shards");
    cvy_text_printf(out, "mixed precision: %s\n", or_none(o->amp));
    cvy_text_printf(out, "frozen: %s\n", or_none(o->freeze));
    cvy_text_printf(out, "buckets of %g MB, the first of %g MB\n", o->bucket_mb, o->first_bucket_mb);
    cvy_text_printf(out, "optimizer %s, attributes %s\n", or_none(o->optimizer),
                    or_none(o->optimizer_attributes));
    cvy_text_printf(out, "norm of gradients clipped to %.17g (0: as it is)\n", o->clip_grad_norm);
    cvy_text_printf(out, "on numbers that are not finite: %s\n", or_none(o->on_nan));
    cvy_text_printf(out, "%lld bytes of memory for a device\n", (long long)o->device_memory);
}

cvy_status cvy_plan_agree(const struct cvy_plan *plan) {
    struct cvy_text text = {0};
    if (cvy_world_size(plan->options.world) == 1)
        return CVY_OK;
    print_options(plan, &text);
    cvy_status status = cvy_graph_print(plan->built, NULL, &text);
    if (status == CVY_OK)
        status = cvy_world_agree(plan->options.world, text.data, "the plan");
    cvy_text_free(&text);
    return status;
}

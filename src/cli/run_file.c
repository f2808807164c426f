/* See run_file.h. */
#include "cli/run_file.h"

#include "engine/json_file.h"

static cvy_status fix(struct flag_values *values, const char *name, int64_t value) {
    char *text;
    CVY_TRY(cvy_pool_printf(&values->pool, &text, "%lld", (long long)value));
    return flags_set(values, name, text);
}

static json_t *settled(const struct cvy_trainer *t, const struct cvy_plan_facts *f) {
    const int64_t *input = t->task.options.input;
    return json_pack(
        "{s:s, s:i, s:i, s:s, s:s, s:I, s:i, s:s, s:I, s:[III], s:I, s:I}", "devices", f->devices,
        "n_devices", f->n_devices, "n_processes", f->n_processes, "strategy", f->strategy, "backend",
        f->backend, "shards", (json_int_t)f->shards, "threads_per_device", f->threads, "conv_algo",
        f->conv_algo, "num_classes", (json_int_t)t->task.options.num_classes, "input", (json_int_t)input[0],
        (json_int_t)input[1], (json_int_t)input[2], "train_images",
        (json_int_t)cvy_dataset_size(t->task.train), "val_images", (json_int_t)cvy_dataset_size(t->task.val));
}

static json_t *outcome(const struct cvy_trainer *t, const struct run_result *r) {
    char hash[17];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->weights_hash);
    return json_pack("{s:I, s:I, s:f, s:I, s:f, s:I, s:f, s:s}", "epochs", (json_int_t)t->state.epoch,
                     "updates", (json_int_t)t->state.n_updates, "val_top1", cvy_tally_top1(&t->val),
                     "val_top1_count", (json_int_t)t->val.top1, "val_top5", cvy_tally_top5(&t->val),
                     "val_images", (json_int_t)t->val.n, "images_per_s", r->images_per_s, "weights_xxh3",
                     hash);
}

static json_t *describe(const struct flag_values *values, const struct cvy_trainer *t,
                        const struct cvy_plan_facts *f, const struct run_result *result) {
    json_t *root = json_pack("{s:s, s:s, s:o, s:o}", "convoy", cvy_version(), "command", "train", "flags",
                             flags_to_json(values), "settled", settled(t, f));
    if (root && result && json_object_set_new(root, "result", outcome(t, result)) != 0) {
        json_decref(root);
        return NULL;
    }
    return root;
}

cvy_status run_file_write(struct flag_values *values, const struct cvy_trainer *t,
                          const struct run_result *result) {
    const char *dir = t->options.output_dir;
    if (!dir || cvy_world_rank(t->options.task.plan.world) > 0)
        return CVY_OK;
    struct cvy_plan_facts facts;
    cvy_plan_facts(t->task.plan, &facts);
    CVY_TRY(fix(values, "shards", facts.shards));
    CVY_TRY(fix(values, "threads-per-device", facts.threads));
    char *path;
    CVY_TRY(cvy_pool_printf(&values->pool, &path, "%s/run.json", dir));
    return cvy_write_json(path, describe(values, t, &facts, result), FLAGS_JSON);
}

/* convoy models: the networks, with their size and cost. */
#include "cli/command.h"
#include "models/summary.h"

#include <stdio.h>

static cvy_status summarize(const struct options *o, const struct cvy_model *model, struct cvy_summary *out) {
    const struct cvy_summary_input input = {.channels = o->input[0],
                                            .height = o->input[1],
                                            .width = o->input[2],
                                            .num_classes = o->num_classes,
                                            .batch = o->batch_size};
    return cvy_model_summarize(model, &input, out);
}

static void print_row(const struct cvy_model *model, const struct cvy_summary *s) {
    char input[64];
    snprintf(input, sizeof input, "%lldx%lldx%lld", (long long)s->input.channels, (long long)s->input.height,
             (long long)s->input.width);
    printf("%-15s %-11s %7lld %12lld %11.2f %10.1f %12.1f  %s\n", model->name, input,
           (long long)s->input.num_classes, (long long)s->n_parameters, s->forward_flops / 1e6,
           (double)s->weight_bytes / 1e6, (double)s->activation_bytes / 1e6, model->help);
}

static json_t *to_json(const struct cvy_model *model, const struct cvy_summary *s) {
    return json_pack("{s:s, s:s, s:b, s:[III], s:I, s:I, s:I, s:I, s:f, s:I, s:I}", "name", model->name,
                     "help", model->help, "classifier", (int)model->is_classifier, "input",
                     (json_int_t)s->input.channels, (json_int_t)s->input.height, (json_int_t)s->input.width,
                     "num_classes", (json_int_t)s->input.num_classes, "batch", (json_int_t)s->input.batch,
                     "parameters", (json_int_t)s->n_parameters, "buffers", (json_int_t)s->n_buffers,
                     "forward_flops_per_image", s->forward_flops, "weight_bytes", (json_int_t)s->weight_bytes,
                     "activation_bytes", (json_int_t)s->activation_bytes);
}

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    (void)log;
    const struct options *o = values->options;
    CVY_TRY(command_no_rest(values));
    json_t *list = o->json ? json_array() : NULL;
    if (!o->json)
        printf(
            "%-15s %-11s %7s %12s %11s %10s %12s  (flops: forward, one image; activations: batch of %lld)\n",
            "model", "input", "classes", "parameters", "Mflop", "weights MB", "activ. MB",
            (long long)o->batch_size);
    size_t n;
    const struct cvy_model *const *table = cvy_model_table(&n);
    for (size_t i = 0; i < n; i++) {
        struct cvy_summary summary;
        if (o->model && table[i] != cvy_model_find(o->model))
            continue;
        cvy_status status = summarize(o, table[i], &summary);
        if (status != CVY_OK) {
            json_decref(list);
            return status;
        }
        if (o->json)
            json_array_append_new(list, to_json(table[i], &summary));
        else
            print_row(table[i], &summary);
    }
    return o->json ? command_print_json(list) : CVY_OK;
}

static const struct flag_group *const groups[] = {&group_shape, &group_batch, &group_json, &group_common,
                                                  NULL};

const struct command command_models = {
    .name = "models",
    .usage = "[--model NAME] [--input CxHxW] [--num-classes K] [--batch-size N] [--json]",
    .help = "list the networks with parameters, flops and memory",
    .groups = groups,
    .run = run,
};

/* convoy predict: what a trained network says about images. */
#include "cli/predict.h"

#include "base/file.h"

#include <math.h>
#include <stdlib.h>

cvy_status predict_check(const float *logits, int64_t n_classes, const char *image) {
    for (int64_t k = 0; k < n_classes; k++) {
        if (!isfinite(logits[k]))
            return CVY_FAIL(CVY_ERR_NAN,
                            "%s: the logit of class %lld is %g: the weights or the image are not finite",
                            image, (long long)k, (double)logits[k]);
    }
    return CVY_OK;
}

static cvy_status prepare(struct prediction *p, struct flag_values *values, const cvy_log_sink *log) {
    CVY_TRY(options_task(values, CVY_TASK_PREDICT, log, &p->options));
    p->options.data = NULL; /* images come from the command line, not from a data set */
    if (!p->flags->weights)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "no weights: give --weights PATH, a file or a folder that --output-dir wrote");
    CVY_TRY(cvy_weights_find(p->flags->weights, &p->weights));
    CVY_TRY(cvy_card_read(p->weights, &p->card));
    return CVY_OK;
}

/* Image files, or a tensor to a tensor: one of the two, and whole. */
static cvy_status check_form(const struct flag_values *values) {
    const struct options *o = values->options;
    bool has_files = o->input_file || o->output_file;
    if (!has_files && !values->rest.n)
        return CVY_FAIL(CVY_ERR_USAGE, "nothing to predict: name image files, or give --input and --output");
    if (has_files && values->rest.n)
        return CVY_FAIL(CVY_ERR_USAGE, "'%s': image files do not go together with --%s", values->rest.data[0],
                        o->input_file ? "input" : "output");
    if (has_files && (!o->input_file || !o->output_file))
        return CVY_FAIL(CVY_ERR_USAGE, "--input and --output: both are needed, safetensors files");
    if (has_files && cvy_is_same_file(o->input_file, o->output_file))
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--output %s: is the file of --input, which would be lost; name another",
                        o->output_file);
    if (has_files && o->weights && cvy_is_same_file(o->weights, o->output_file))
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--output %s: is the file of --weights, which would be lost; name another",
                        o->output_file);
    return CVY_OK;
}

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    struct prediction p = {.flags = values->options};
    CVY_TRY(check_form(values));
    cvy_status status = prepare(&p, values, log);
    if (status == CVY_OK)
        status = p.flags->input_file ? predict_tensors(&p)
                                     : predict_images(&p, values->rest.data, (int64_t)values->rest.n);
    cvy_task_free(&p.task);
    cvy_card_free(&p.card);
    free(p.weights);
    return status;
}

static void models(struct flag_names *out) {
    size_t n;
    const struct cvy_model *const *table = cvy_model_table(&n);
    for (out->n = 0; out->n < n && out->n < sizeof out->name / sizeof out->name[0]; out->n++)
        out->name[out->n] = table[out->n]->name;
}

/* --input is a file here, so the model's group is written out. */
static const struct flag predict_flags[] = {
    {.name = "model",
     .type = FLAG_TEXT,
     .offset = offsetof(struct options, model),
     .help = "default: what the weights' file says",
     .choices = models},
    {.name = "num-classes",
     .type = FLAG_INT,
     .offset = offsetof(struct options, num_classes),
     .help = "classes of the last layer; 0: what the weights' file says, else the model's own",
     .initial = "0",
     .max = 1 << 24},
    {.name = "topk",
     .type = FLAG_INT,
     .offset = offsetof(struct options, topk),
     .help = "classes to name for each image",
     .initial = "5",
     .min = 1,
     .max = 1 << 24},
    {.name = "input",
     .type = FLAG_TEXT,
     .offset = offsetof(struct options, input_file),
     .help = "safetensors with \"images\", float32 N,C,H,W, normalised as the network takes them",
     .value_name = "FILE"},
    {.name = "output",
     .type = FLAG_TEXT,
     .offset = offsetof(struct options, output_file),
     .help = "safetensors that \"logits\", float32 N,K, are written to",
     .value_name = "FILE"},
};
static const struct flag_group group_predict = {
    .title = "Prediction", .flags = predict_flags, .n = sizeof predict_flags / sizeof predict_flags[0]};

static const struct flag_group *const groups[] = {&group_predict, &group_weights, &group_prepare,
                                                  &group_batch,   &group_devices, &group_kernels,
                                                  &group_json,    &group_common,  NULL};

const struct command command_predict = {
    .name = "predict",
    .usage = "IMAGE... --weights PATH [--topk K] [--json]\n"
             "       convoy predict --model NAME --weights FILE --input X.safetensors --output Y.safetensors",
    .help = "name the classes of images, or turn a tensor of images into logits",
    .groups = groups,
    .run = run,
};

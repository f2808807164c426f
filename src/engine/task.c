/* See task.h. */
#include "engine/task.h"

#include "data/data.h"
#include "data/loader.h"
#include "engine/session.h"
#include "engine/world.h"

#include <string.h>
#include <xxhash.h>

#define LL(x) ((long long)(x))

static cvy_status find_model(struct cvy_task *task) {
    const char *name = task->options.model;
    if (!name)
        return CVY_FAIL(CVY_ERR_USAGE, "no model is named: give --model NAME; `convoy models` lists them");
    task->model = cvy_model_find(name);
    if (!task->model)
        return CVY_FAIL(CVY_ERR_USAGE, "unknown model '%s': `convoy models` lists them", name);
    if (task->options.kind != CVY_TASK_PREDICT && !task->model->is_classifier)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "model '%s' is no classifier: it does not yield one score a class, so labels cannot "
                        "train or judge it; choose another, or write the loss in C as "
                        "examples/simple_model.c does",
                        name);
    return CVY_OK;
}

static cvy_status open_data(struct cvy_task *task) {
    const struct cvy_task_options *o = &task->options;
    bool is_optional = o->is_plan_only || o->kind == CVY_TASK_PREDICT;
    if (task->val || (is_optional && !o->data))
        return CVY_OK;
    if (!o->data)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "no data set is named: give --data SPEC, such as digits or folder:DIR");
    if (o->kind == CVY_TASK_TRAIN)
        CVY_TRY(cvy_dataset_open(o->data, CVY_SPLIT_TRAIN, &o->plan.log, &task->train));
    return cvy_dataset_open(o->data, CVY_SPLIT_VAL, &o->plan.log, &task->val);
}

static void settle_exif(struct cvy_task *task) {
    const bool as_stored = task->options.as_stored > 0;
    if (task->train)
        task->train->as_stored = as_stored;
    if (task->val)
        task->val->as_stored = as_stored;
}

static cvy_status check_mean_std(const struct cvy_task_options *o, int64_t channels) {
    if (o->n_mean_std && o->n_mean_std != channels)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--mean and --std have %d numbers, images have %lld channels: give one for each, or "
                        "one for all",
                        o->n_mean_std, LL(channels));
    return CVY_OK;
}

/* The shape of images: as asked for, else the data's, else the model's. Where the data's own differs, or varies,
   they are resized and cropped to it. */
static cvy_status settle_input(struct cvy_task *task) {
    struct cvy_task_options *o = &task->options;
    cvy_loader_options *l = &o->loader;
    const struct cvy_dataset *data = task->train ? task->train : task->val;
    int64_t want[3] = {o->input[0], o->input[1], o->input[2]};
    bool is_asked = want[0] != 0;
    if (!is_asked)
        memcpy(want, (int64_t[3]){task->model->channels, task->model->height, task->model->width},
               sizeof want);
    memcpy(o->input, want, sizeof want);
    if (!data)
        return CVY_OK;
    if (is_asked)
        l->channels = want[0];
    CVY_TRY(check_mean_std(o, l->channels ? l->channels : data->channels));
    bool is_varied = data->height == 0 || data->width == 0;
    bool is_other = data->height != want[1] || data->width != want[2];
    if (is_asked ? is_other : is_varied && !l->resize) {
        if (is_asked && !l->resize && data->dtype == CVY_U8 && !cvy_preset_resizes(l->preset))
            l->resize = want[1] > want[2] ? want[1] : want[2];
        if (!l->crop[0])
            memcpy(l->crop, want + 1, sizeof l->crop);
    }
    cvy_loader_options plain = *l;
    plain.augment = false;
    CVY_TRY(cvy_transform_plan(task->val, &plain, &task->transform));
    const struct cvy_transform *t = &task->transform;
    memcpy(o->input, (int64_t[3]){t->channels, t->height, t->width}, sizeof o->input);
    if (is_asked && memcmp(o->input, want, sizeof want) != 0)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--input %lldx%lldx%lld: the images of '%s' come out as %lldx%lldx%lld", LL(want[0]),
                        LL(want[1]), LL(want[2]), data->spec, LL(t->channels), LL(t->height), LL(t->width));
    return CVY_OK;
}

static cvy_status check_progressive(const struct cvy_task_options *o) {
    if (o->progressive.last > 0 && (o->input[1] != o->input[2] || o->progressive.last > o->input[1]))
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "--progressive-resize %lld:%lld: validation images are %lldx%lld, those of training must be "
            "square and at most as large: give --input",
            LL(o->progressive.first), LL(o->progressive.last), LL(o->input[1]), LL(o->input[2]));
    return CVY_OK;
}

static cvy_status settle_classes(struct cvy_task *task) {
    struct cvy_task_options *o = &task->options;
    const struct cvy_dataset *data = task->train ? task->train : task->val;
    int64_t n = data ? data->n_classes : 0;
    if (data && o->num_classes && o->num_classes < n && o->kind == CVY_TASK_EVAL)
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "the data '%s' have %lld classes, the network %lld (--num-classes, or what its weights say): it "
            "was trained on others",
            data->spec, LL(n), LL(o->num_classes));
    if (data && o->num_classes && o->num_classes < n)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--num-classes %lld: the data '%s' have %lld classes; give at least that",
                        LL(o->num_classes), data->spec, LL(n));
    if (!o->num_classes)
        o->num_classes = n ? n : task->model->num_classes;
    return CVY_OK;
}

static cvy_status settle_batch(struct cvy_task *task) {
    struct cvy_task_options *o = &task->options;
    if (task->train && o->is_any_batch && o->loader.batch_size > task->train->n)
        o->loader.batch_size = task->train->n;
    if (task->train && o->loader.batch_size > task->train->n)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--batch-size %lld: the training set '%s' has only %lld images; give at most that",
                        LL(o->loader.batch_size), task->train->spec, LL(task->train->n));
    if (task->val && !task->train && o->loader.batch_size > task->val->n)
        o->loader.batch_size = task->val->n;
    o->plan.batch_size = o->loader.batch_size;
    o->plan.accumulate = o->loader.accumulate;
    return CVY_OK;
}

static cvy_status open_loaders(struct cvy_task *task) {
    cvy_loader_options options = task->options.loader;
    if (task->train) {
        options.augment = true;
        CVY_TRY(cvy_loader_new(task->train, &options, &task->train_loader));
        if (task->options.n_times > 1)
            CVY_TRY(cvy_loader_repeat(task->train_loader, task->options.n_times));
        if (task->options.skips_bad)
            CVY_TRY(cvy_loader_skip_bad(task->train_loader));
        int64_t c, h, w;
        cvy_loader_shape(task->train_loader, &c, &h, &w);
        const int64_t *want = task->options.input;
        if (c != want[0] || h != want[1] || w != want[2])
            return CVY_FAIL(CVY_ERR_DATA,
                            "'%s': training images are %lldx%lldx%lld, those for validation %lldx%lldx%lld",
                            task->train->spec, LL(c), LL(h), LL(w), LL(want[0]), LL(want[1]), LL(want[2]));
    }
    options.augment = false;
    options.shuffle = false;
    if (task->val)
        CVY_TRY(cvy_loader_new(task->val, &options, &task->val_loader));
    if (task->val_loader && task->train_loader) /* never at work together */
        CVY_TRY(cvy_loader_join(task->val_loader, task->train_loader));
    return CVY_OK;
}

static cvy_status build(const struct cvy_task *task, int64_t height, int64_t width, cvy_graph *graph) {
    const struct cvy_task_options *o = &task->options;
    const struct cvy_mixing mixing = {o->mixup_alpha, o->cutmix_alpha, height, width};
    const bool mixes = o->kind == CVY_TASK_TRAIN && (o->mixup_alpha > 0 || o->cutmix_alpha > 0);
    cvy_value images = cvy_input(graph, "images", o->input[0], height, width);
    if (mixes)
        images = cvy_mix_images(graph, images, &mixing);
    cvy_value logits = cvy_model(graph, o->model, images, o->num_classes);
    cvy_output(graph, "logits", logits);
    if (mixes)
        cvy_mixed_cross_entropy(graph, logits, cvy_labels(graph), o->label_smoothing, &mixing);
    else if (o->kind != CVY_TASK_PREDICT)
        cvy_cross_entropy(graph, logits, cvy_labels(graph), o->label_smoothing);
    return cvy_graph_status(graph);
}

static cvy_status make_plan(struct cvy_task *task) {
    cvy_graph *graph = NULL;
    cvy_status status;
    CVY_TRY_OUT(cvy_graph_new(&graph));
    CVY_TRY_OUT(build(task, task->options.input[1], task->options.input[2], graph));
    CVY_TRY_OUT(cvy_plan_new(graph, &task->options.plan, &task->plan));
    for (int i = 0; i < 2; i++) {
        cvy_loader *loader = i ? task->val_loader : task->train_loader;
        if (loader)
            CVY_TRY_OUT(cvy_plan_share(task->plan, loader));
    }
out:
    cvy_graph_free(graph);
    return status;
}

/* Labels and names of all samples, in their order; folders may lie elsewhere on each node. */
static uint64_t hash_samples(const cvy_dataset *data) {
    uint64_t hash = 0;
    for (int64_t i = 0; i < data->n && !data->is_unlabelled; i++) {
        const char *path = data->format->path ? data->format->path(data, i) : NULL;
        const char *slash = path ? strrchr(path, '/') : NULL;
        const char *name = slash ? slash + 1 : path ? path : "";
        int64_t label = -1; /* what is no class is found where it is read */
        (void)data->format->label(data, i, &label);
        hash = XXH3_64bits_withSeed(&label, sizeof label, hash);
        hash = XXH3_64bits_withSeed(name, strlen(name), hash);
    }
    return hash;
}

static void print_data(const cvy_dataset *data, const char *what, struct cvy_text *out) {
    cvy_text_printf(out, "%lld images to %s, of %lld classes\n", LL(data->n), what, LL(data->n_classes));
    for (int64_t c = 0; data->class_names && c < data->n_classes; c++)
        cvy_text_printf(out, "class %lld of them: %s\n", LL(c), data->class_names[c]);
    cvy_text_printf(out, "their labels and file names: xxh3 %016llx\n",
                    (unsigned long long)hash_samples(data));
}

/* Do all processes see the same model, data and loader? Paths may differ from node to node. */
static cvy_status agree(const struct cvy_task *task) {
    const struct cvy_task_options *o = &task->options;
    const cvy_loader_options *l = &o->loader;
    struct cvy_text text = {0};
    if (cvy_world_size(o->plan.world) == 1)
        return CVY_OK;
    cvy_text_printf(&text, "model %s\n", o->model);
    for (int i = 0; i < 2; i++) {
        const cvy_dataset *data = i ? task->val : task->train;
        if (data)
            print_data(data, i ? "judge with" : "train on", &text);
    }
    cvy_text_printf(&text, "images of %lldx%lldx%lld\n", LL(o->input[0]), LL(o->input[1]), LL(o->input[2]));
    cvy_text_printf(&text, "batch size %lld\n", LL(l->batch_size));
    cvy_text_printf(&text, "seed %llu\n", (unsigned long long)l->seed);
    cvy_text_printf(&text, "EXIF %s\n", o->as_stored > 0 ? "passed over" : "counts");
    cvy_text_printf(&text, "each image %lld times\n", LL(o->n_times > 1 ? o->n_times : 1));
    cvy_text_printf(&text, "bad images %s\n", o->skips_bad ? "skipped" : "end it");
    cvy_text_printf(
        &text, "shuffling %s, augmentation %s, resize %lld, crop %lldx%lld, pad %lld, flip %d, erase %.17g\n",
        l->shuffle ? "on" : "off", l->preset ? l->preset : "as suits the data", LL(l->resize), LL(l->crop[0]),
        LL(l->crop[1]), LL(l->pad), l->flip, l->random_erase);
    cvy_text_printf(&text, "automatic augmentation %s, magnitude %d, colour jitter %.9g,%.9g,%.9g,%.9g\n",
                    l->auto_augment ? l->auto_augment : "none", l->ra_magnitude, (double)l->color_jitter[0],
                    (double)l->color_jitter[1], (double)l->color_jitter[2], (double)l->color_jitter[3]);
    cvy_text_printf(&text, "sizes %lld to %lld by %lld in %lld epochs\n", LL(o->progressive.first),
                    LL(o->progressive.last), LL(o->progressive.step), LL(o->progressive.n_epochs));
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_world_agree(o->plan.world, text.data, "model and data");
    cvy_text_free(&text);
    return status;
}

static cvy_status open_model_and_data(void *context) {
    struct cvy_task *task = context;
    CVY_TRY(find_model(task));
    return open_data(task);
}

/* What each process finds out for itself. */
static cvy_status settle(struct cvy_task *task) {
    CVY_TRY(cvy_world_in_turn(task->options.plan.world, open_model_and_data, task, "opening the data"));
    settle_exif(task);
    CVY_TRY(settle_input(task));
    task->side = task->options.input[1];
    CVY_TRY(check_progressive(&task->options));
    CVY_TRY(settle_classes(task));
    CVY_TRY(settle_batch(task));
    return open_loaders(task);
}

cvy_status cvy_task_open(struct cvy_task *task, const struct cvy_task_options *options, cvy_dataset *images) {
    task->options = *options;
    task->val = images;
    CVY_TRY(cvy_world_meet_failure(options->plan.world, settle(task), "model and data"));
    CVY_TRY(agree(task));
    return make_plan(task);
}

/* All batch sizes of an epoch are compiled before its first step: the full one and what is left for the last. */
static cvy_status prepare_sizes(struct cvy_task *task, const cvy_dataset *data, bool is_training) {
    int64_t batch = task->options.loader.batch_size;
    if (data && data->n >= batch)
        CVY_TRY(cvy_session_prepare(task->session, batch, is_training, false));
    if (data && data->n % batch > 0)
        CVY_TRY(cvy_session_prepare(task->session, data->n % batch, is_training, false));
    return CVY_OK;
}

cvy_status cvy_task_start(struct cvy_task *task) {
    CVY_TRY(cvy_session_new(task->plan, &task->session));
    CVY_TRY(prepare_sizes(task, task->train, true));
    return prepare_sizes(task, task->val, false);
}

cvy_status cvy_task_resize(struct cvy_task *task, int64_t side) {
    const int64_t batch = task->options.loader.batch_size, n = task->train->n;
    const int64_t sizes[2] = {batch, n % batch};
    cvy_graph *graph = NULL;
    cvy_status status;
    if (side == task->side)
        return CVY_OK;
    CVY_TRY_OUT(cvy_loader_resize(task->train_loader, side));
    CVY_TRY_OUT(cvy_graph_new(&graph));
    CVY_TRY_OUT(build(task, side, side, graph));
    CVY_TRY_OUT(cvy_session_resize(task->session, graph, sizes));
    task->side = side;
out:
    cvy_graph_free(graph);
    return status;
}

void cvy_task_free(struct cvy_task *task) {
    cvy_session_free(task->session);
    cvy_plan_free(task->plan);
    cvy_loader_free(task->train_loader);
    cvy_loader_free(task->val_loader);
    cvy_dataset_free(task->train);
    cvy_dataset_free(task->val);
    *task = (struct cvy_task){0};
}

/* See card.h. Keys of the metadata: model, num_classes, classes (a JSON array), input ("3x32x32"), resize,
   mean and std ("0.5,0.5,0.5"), shards, threads_per_device, conv_algo, fast_reduce
   and as_stored ("true", or not there); besides "format": "pt" and "convoy", our
   version. Numbers are written so that they read back exactly. */
#include "engine/card.h"

#include "base/text.h"
#include "data/data.h"
#include "graph/safetensors.h"
#include "graph/weights_file.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#define LL(x) ((long long)(x))

enum { MAX_TAGS = 16, MAX_CHANNELS = 4 };

cvy_status cvy_card_make(const struct cvy_task *task, struct cvy_card *out) {
    const struct cvy_dataset *data = task->train ? task->train : task->val;
    struct cvy_plan_facts facts;
    cvy_plan_facts(task->plan, &facts);
    struct cvy_card card = {.model = task->options.model,
                            .num_classes = task->options.num_classes,
                            .n_names = data ? data->n_classes : 0,
                            .resize = task->transform.resize,
                            .shards = facts.shards,
                            .threads = facts.threads,
                            .is_as_stored = data && data->as_stored,
                            .is_fast_reduce = facts.is_fast_reduce};
    memcpy(card.input, task->options.input, sizeof card.input);
    memcpy(card.mean, task->transform.mean, sizeof card.mean);
    memcpy(card.std, task->transform.std, sizeof card.std);
    char *text;
    const char **names;
    cvy_status status;
    CVY_TRY_OUT(cvy_pool_strdup(&card.pool, facts.conv_algo, &text));
    card.conv_algo = text;
    CVY_TRY_OUT(cvy_pool_strdup(&card.pool, task->options.model, &text));
    card.model = text;
    CVY_TRY_OUT(cvy_pool_alloc(&card.pool, (size_t)card.n_names * sizeof *names, (void **)&names));
    card.names = names;
    for (int64_t k = 0; k < card.n_names; k++) {
        CVY_TRY_OUT(cvy_pool_strdup(&card.pool, cvy_dataset_class_name(data, k), &text));
        names[k] = text;
    }
    *out = card;
    return CVY_OK;
out:
    cvy_card_free(&card);
    return status;
}

void cvy_card_free(struct cvy_card *card) {
    cvy_pool_free(&card->pool);
    *card = (struct cvy_card){0};
}

/* ---- to metadata ----------------------------------------------------------------------------------- */

struct tags {
    struct cvy_safetensors_pair tag[MAX_TAGS];
    size_t n;
    struct cvy_pool pool; /* owns the values */
};

static cvy_status add_text(struct tags *tags, const char *key, const char *value) {
    char *copy;
    CVY_TRY(cvy_pool_strdup(&tags->pool, value, &copy));
    tags->tag[tags->n++] = (struct cvy_safetensors_pair){.key = key, .value = copy};
    return CVY_OK;
}

static cvy_status add_number(struct tags *tags, const char *key, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%lld", LL(value));
    return add_text(tags, key, text);
}

static cvy_status add_channels(struct tags *tags, const char *key, const float *value, int64_t n) {
    char text[MAX_CHANNELS * 24] = "";
    for (int64_t c = 0; c < n && c < MAX_CHANNELS; c++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%.9g", c ? "," : "", (double)value[c]);
    }
    return add_text(tags, key, text);
}

static cvy_status add_names(struct tags *tags, const struct cvy_card *card) {
    json_t *list = json_array();
    bool failed = !list;
    for (int64_t k = 0; k < card->n_names && !failed; k++) {
        if (!cvy_is_utf8(card->names[k])) {
            json_decref(list);
            return CVY_FAIL(CVY_ERR_DATA, "the name of class %lld is not UTF-8", LL(k));
        }
        failed = json_array_append_new(list, json_string(card->names[k])) != 0;
    }
    char *text = failed ? NULL : json_dumps(list, JSON_COMPACT);
    json_decref(list);
    if (!text)
        return CVY_FAIL(CVY_ERR_MEMORY, "no memory for the list of %lld classes", LL(card->n_names));
    cvy_status status = add_text(tags, "classes", text);
    free(text);
    return status;
}

static cvy_status make_tags(const struct cvy_card *card, struct tags *out) {
    char input[80];
    snprintf(input, sizeof input, "%lldx%lldx%lld", LL(card->input[0]), LL(card->input[1]),
             LL(card->input[2]));
    CVY_TRY(add_text(out, "format", "pt"));
    CVY_TRY(add_text(out, "convoy", cvy_version()));
    CVY_TRY(add_text(out, "model", card->model));
    CVY_TRY(add_number(out, "num_classes", card->num_classes));
    CVY_TRY(add_names(out, card));
    CVY_TRY(add_text(out, "input", input));
    CVY_TRY(add_number(out, "resize", card->resize));
    CVY_TRY(add_channels(out, "mean", card->mean, card->input[0]));
    CVY_TRY(add_channels(out, "std", card->std, card->input[0]));
    CVY_TRY(add_number(out, "shards", card->shards));
    CVY_TRY(add_number(out, "threads_per_device", card->threads));
    if (card->is_as_stored)
        CVY_TRY(add_text(out, "as_stored", "true"));
    if (card->is_fast_reduce)
        CVY_TRY(add_text(out, "fast_reduce", "true"));
    return add_text(out, "conv_algo", card->conv_algo);
}

cvy_status cvy_card_write(const struct cvy_card *card, const struct cvy_tensors *weights, const char *path) {
    struct tags tags = {.n = 0};
    cvy_status status = make_tags(card, &tags);
    if (status == CVY_OK)
        status = cvy_safetensors_write(path, weights->data, weights->n, tags.tag, tags.n);
    cvy_pool_free(&tags.pool);
    return status;
}

/* ---- from metadata ----------------------------------------------------------------------------------- */

static cvy_status bad(const char *key, const char *value, const char *want) {
    return CVY_FAIL(CVY_ERR_DATA, "metadata \"%s\" is \"%.40s\": must be %s", key, value, want);
}

/* n whole numbers of at least `min` between separators. */
static cvy_status read_numbers(const char *key, const char *value, char separator, int64_t min, int n,
                               int64_t *out) {
    char piece[32];
    for (int i = 0; i < n; i++) {
        size_t length = strcspn(value, (char[]){separator, 0});
        snprintf(piece, sizeof piece, "%.*s", (int)(length < sizeof piece ? length : 0), value);
        bool is_last = i == n - 1;
        if (!cvy_parse_i64(piece, &out[i]) || out[i] < min || out[i] > INT32_MAX || is_last != !value[length])
            return bad(key, value, n == 3 ? "CxHxW" : "a whole number in range");
        value += length + 1;
    }
    return CVY_OK;
}

static cvy_status read_channels(const char *key, const char *value, int64_t n, float *out) {
    const char *at = value;
    for (int64_t c = 0; c < n; c++) {
        char *end;
        out[c] = strtof(at, &end);
        if (end == at || !isfinite(out[c]) || *end != (c == n - 1 ? 0 : ','))
            return bad(key, value, "one finite number for each channel");
        at = end + 1;
    }
    return CVY_OK;
}

static cvy_status read_names(const char *value, struct cvy_card *card) {
    json_t *list = json_loads(value, 0, NULL), *item;
    size_t n = json_array_size(list), k;
    const char **names;
    cvy_status status = CVY_OK;
    if (!json_is_array(list) || (int64_t)n > card->num_classes) {
        status = bad("classes", value, "a JSON array of at most num_classes names");
        goto out;
    }
    CVY_TRY_OUT(cvy_pool_alloc(&card->pool, n * sizeof *names, (void **)&names));
    json_array_foreach(list, k, item) {
        char *copy;
        if (!json_is_string(item)) {
            status = bad("classes", value, "a JSON array of texts");
            goto out;
        }
        CVY_TRY_OUT(cvy_pool_strdup(&card->pool, json_string_value(item), &copy));
        names[k] = copy;
    }
    card->n_names = (int64_t)n;
    card->names = names;
out:
    json_decref(list);
    return status;
}

/* Sets *value to the entry's copy; every entry is there when "model" is. */
static cvy_status need(struct cvy_weights_file *file, struct cvy_card *card, const char *key, char **value) {
    const char *found = cvy_weights_file_metadata(file, key);
    if (!found)
        return CVY_FAIL(CVY_ERR_DATA, "metadata \"%s\" is missing, though \"model\" is there", key);
    return cvy_pool_strdup(&card->pool, found, value);
}

static cvy_status read_entries(struct cvy_weights_file *file, struct cvy_card *card) {
    char *value;
    CVY_TRY(need(file, card, "model", &value));
    card->model = value;
    CVY_TRY(need(file, card, "num_classes", &value));
    CVY_TRY(read_numbers("num_classes", value, ',', 1, 1, &card->num_classes));
    CVY_TRY(need(file, card, "classes", &value));
    CVY_TRY(read_names(value, card));
    CVY_TRY(need(file, card, "input", &value));
    CVY_TRY(read_numbers("input", value, 'x', 1, 3, card->input));
    if (card->input[0] > MAX_CHANNELS)
        return bad("input", value, "of at most 4 channels");
    CVY_TRY(need(file, card, "resize", &value));
    CVY_TRY(read_numbers("resize", value, ',', 0, 1, &card->resize));
    CVY_TRY(need(file, card, "mean", &value));
    CVY_TRY(read_channels("mean", value, card->input[0], card->mean));
    CVY_TRY(need(file, card, "std", &value));
    CVY_TRY(read_channels("std", value, card->input[0], card->std));
    CVY_TRY(need(file, card, "shards", &value));
    CVY_TRY(read_numbers("shards", value, ',', 1, 1, &card->shards));
    CVY_TRY(need(file, card, "threads_per_device", &value));
    CVY_TRY(read_numbers("threads_per_device", value, ',', 1, 1, &card->threads));
    CVY_TRY(need(file, card, "conv_algo", &value));
    card->conv_algo = value;
    card->is_as_stored = cvy_weights_file_metadata(file, "as_stored") != NULL;
    card->is_fast_reduce = cvy_weights_file_metadata(file, "fast_reduce") != NULL;
    return CVY_OK;
}

cvy_status cvy_card_read(const char *path, struct cvy_card *out) {
    struct cvy_weights_file *file;
    struct cvy_card card = {0};
    CVY_TRY(cvy_weights_file_open(path, &file));
    cvy_status status = CVY_OK;
    if (cvy_weights_file_metadata(file, "convoy") && cvy_weights_file_metadata(file, "model"))
        status = read_entries(file, &card);
    cvy_weights_file_free(file);
    if (status != CVY_OK) {
        cvy_card_free(&card);
        return cvy_fail_prefix(status, "%s: ", path);
    }
    *out = card;
    return CVY_OK;
}

/* ---- does it fit? ------------------------------------------------------------------------------------- */

static cvy_status check_names(const struct cvy_card *card, const struct cvy_dataset *data, const char *path) {
    if (card->n_names != data->n_classes)
        return CVY_FAIL(CVY_ERR_DATA, "%s was trained on %lld classes, the data '%s' have %lld", path,
                        LL(card->n_names), data->spec, LL(data->n_classes));
    for (int64_t k = 0; k < card->n_names; k++) {
        const char *here = cvy_dataset_class_name(data, k);
        if (strcmp(card->names[k], here) != 0)
            return CVY_FAIL(CVY_ERR_DATA, "%s: class %lld is called '%s' there, but '%s' in the data '%s'",
                            path, LL(k), card->names[k], here, data->spec);
    }
    return CVY_OK;
}

cvy_status cvy_card_check_model(const struct cvy_card *card, const struct cvy_task *task, const char *path) {
    const struct cvy_task_options *o = &task->options;
    if (card->model && strcmp(card->model, o->model) != 0)
        return CVY_FAIL(CVY_ERR_DATA, "%s holds the model '%s', not '%s': give --model %s or other weights",
                        path, card->model, o->model, card->model);
    return CVY_OK;
}

cvy_status cvy_card_check(const struct cvy_card *card, const struct cvy_task *task, const char *path) {
    const struct cvy_task_options *o = &task->options;
    if (!card->model)
        return CVY_OK;
    CVY_TRY(cvy_card_check_model(card, task, path));
    if (card->num_classes != o->num_classes)
        return CVY_FAIL(CVY_ERR_DATA, "%s holds a model of %lld classes, not %lld%s", path,
                        LL(card->num_classes), LL(o->num_classes),
                        o->kind == CVY_TASK_TRAIN ? ": --replace-head takes all but the last layer" : "");
    const struct cvy_dataset *data = task->train ? task->train : task->val;
    bool is_labelled = data && !data->is_unlabelled && o->kind != CVY_TASK_PREDICT;
    return is_labelled && card->n_names ? check_names(card, data, path) : CVY_OK;
}

void cvy_card_complete(const struct cvy_card *card, struct cvy_task_options *options) {
    cvy_loader_options *loader = &options->loader;
    if (!card->model)
        return;
    if (!options->model)
        options->model = card->model;
    if (!options->num_classes)
        options->num_classes = card->num_classes;
    if (!loader->has_mean_std) {
        loader->has_mean_std = true;
        memcpy(loader->mean, card->mean, sizeof loader->mean);
        memcpy(loader->std, card->std, sizeof loader->std);
    }
    if (options->as_stored == 0 && card->is_as_stored)
        options->as_stored = 1;
    if (!loader->channels)
        loader->channels = card->input[0];
    if (!options->input[0] && !loader->crop[0] && !loader->resize) {
        memcpy(options->input, card->input, sizeof options->input);
        loader->resize = card->resize;
    }
}

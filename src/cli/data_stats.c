/* convoy data stats: the figures of a data set, as text, flags or JSON. */
#include "base/text.h"
#include "cli/command.h"
#include "cli/reading.h"
#include "data/statistics.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_LISTED = 20 };

static void print_bins(const struct cvy_statistics *s, struct cvy_text *out) {
    cvy_text_printf(out, "  images by their shorter side in pixels:\n");
    for (int k = 0; k < CVY_N_SIZE_BINS; k++) {
        if (s->shorter_side[k])
            cvy_text_printf(out, "    %lld to %lld: %lld\n", 1LL << k, (2LL << k) - 1,
                            (long long)s->shorter_side[k]);
    }
    cvy_text_printf(out, "  smallest %lldx%lld, largest %lldx%lld (height x width)\n",
                    (long long)s->smallest[0], (long long)s->smallest[1], (long long)s->largest[0],
                    (long long)s->largest[1]);
}

static void print_classes(const struct cvy_dataset *data, const struct cvy_statistics *s,
                          struct cvy_text *out) {
    int64_t fewest = s->n, most = 0;
    for (int64_t k = 0; k < data->n_classes; k++) {
        fewest = s->per_class[k] < fewest ? s->per_class[k] : fewest;
        most = s->per_class[k] > most ? s->per_class[k] : most;
    }
    cvy_text_printf(out, "  %lld class%s, of %lld to %lld images:\n", (long long)data->n_classes,
                    data->n_classes == 1 ? "" : "es", (long long)fewest, (long long)most);
    for (int64_t k = 0; k < data->n_classes && k < MAX_LISTED; k++) {
        cvy_text_printf(out, "    ");
        cvy_text_escape(out, cvy_dataset_class_name(data, k));
        cvy_text_printf(out, ": %lld\n", (long long)s->per_class[k]);
    }
    if (data->n_classes > MAX_LISTED)
        cvy_text_printf(out, "    and %lld more: --json lists all\n",
                        (long long)(data->n_classes - MAX_LISTED));
}

/* Ready to be pasted. A channel that never changes cannot be divided by its deviation. */
static void print_flags(const struct cvy_statistics *s, struct cvy_text *out) {
    for (int64_t c = 0; c < s->channels; c++)
        cvy_text_printf(out, "%s%.4f", c ? "," : "--mean ", s->mean[c]);
    for (int64_t c = 0; c < s->channels; c++)
        cvy_text_printf(out, "%s%.4f", c ? "," : " --std ", s->std[c] < 1e-4 ? 1 : s->std[c]);
    cvy_text_printf(out, "\n");
}

static cvy_status print_split(const struct cvy_dataset *data, const struct cvy_statistics *s) {
    const bool is_training = data->split == CVY_SPLIT_TRAIN;
    struct cvy_text text = {0};
    char *lines;
    cvy_text_printf(&text, "%s: %lld image%s\n", is_training ? "training" : "validation", (long long)s->n,
                    s->n == 1 ? "" : "s");
    if (s->n_bad)
        cvy_text_printf(&text,
                        "  %lld of them cannot be read and are left out: `convoy data check` says why\n",
                        (long long)s->n_bad);
    print_bins(s, &text);
    if (s->per_class)
        print_classes(data, s, &text);
    if (is_training)
        print_flags(s, &text);
    CVY_TRY(cvy_text_take(&text, &lines));
    fputs(lines, stdout);
    free(lines);
    return CVY_OK;
}

static json_t *split_to_json(const struct cvy_dataset *data, const struct cvy_statistics *s) {
    json_t *mean = json_array(), *std = json_array(), *bins = json_array(), *classes = json_array();
    for (int64_t c = 0; c < s->channels; c++) {
        json_array_append_new(mean, json_real(s->mean[c]));
        json_array_append_new(std, json_real(s->std[c]));
    }
    for (int k = 0; k < CVY_N_SIZE_BINS; k++) {
        if (s->shorter_side[k])
            json_array_append_new(bins, json_pack("{s:I, s:I, s:I}", "from", (json_int_t)1 << k, "to",
                                                  ((json_int_t)2 << k) - 1, "images",
                                                  (json_int_t)s->shorter_side[k]));
    }
    for (int64_t k = 0; s->per_class && k < data->n_classes; k++)
        json_array_append_new(classes, json_pack("{s:s, s:I}", "name", cvy_dataset_class_name(data, k),
                                                 "images", (json_int_t)s->per_class[k]));
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:[I,I], s:[I,I], s:o}", "images", (json_int_t)s->n,
                     "unreadable", (json_int_t)s->n_bad, "mean", mean, "std", std, "shorter_side", bins,
                     "smallest", (json_int_t)s->smallest[0], (json_int_t)s->smallest[1], "largest",
                     (json_int_t)s->largest[0], (json_int_t)s->largest[1], "classes", classes);
}

/* Prints, or puts into `object`. */
static cvy_status take(const char *spec, cvy_split split, const struct options *options,
                       const cvy_log_sink *log, json_t *object) {
    struct reading reading = {.done = split == CVY_SPLIT_TRAIN ? "training: read" : "validation: read"};
    struct cvy_statistics s = {.progress = reading_progress(&reading)};
    cvy_dataset *data = NULL;
    cvy_status status;
    CVY_TRY_OUT(cvy_dataset_open(spec, split, log, &data));
    CVY_TRY_OUT(cvy_statistics_take(data, (int)options->workers, &s));
    if (s.n_bad == s.n) {
        status = CVY_FAIL(CVY_ERR_DATA, "'%s': no image can be read: `convoy data check` says why", spec);
        goto out;
    }
    if (options->json != 1)
        CVY_TRY_OUT(print_split(data, &s));
    else
        json_object_set_new(object, split == CVY_SPLIT_TRAIN ? "train" : "val", split_to_json(data, &s));
out:
    cvy_statistics_free(&s);
    cvy_dataset_free(data);
    return status;
}

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    const struct options *options = values->options;
    cvy_status status;
    if (values->rest.n != 1)
        return CVY_FAIL(CVY_ERR_USAGE, "name one data set, as in `convoy data stats folder:DIR`");
    json_t *object = json_object();
    CVY_TRY_OUT(take(values->rest.data[0], CVY_SPLIT_TRAIN, options, log, object));
    CVY_TRY_OUT(take(values->rest.data[0], CVY_SPLIT_VAL, options, log, object));
    if (options->json == 1)
        CVY_TRY_OUT(command_print_json(json_incref(object)));
out:
    json_decref(object);
    return status;
}

static const struct flag_group *const groups[] = {&group_reading, &group_json, &group_common, NULL};

const struct command command_data_stats = {
    .name = "data stats",
    .usage = "SPEC",
    .help = "mean and deviation as flags, sizes and classes of a data set",
    .groups = groups,
    .run = run,
};

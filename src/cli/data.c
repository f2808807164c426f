/* convoy data: the formats of data sets; or what a data set holds. */
#include "data/data.h"
#include "base/text.h"
#include "cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_formats(void) {
    size_t n;
    const struct cvy_format *const *table = cvy_format_table(&n);
    printf("formats of --data:\n");
    for (size_t i = 0; i < n; i++)
        printf("  %s\n", table[i]->help);
}

static void print_split(const struct cvy_dataset *data, const char *split) {
    printf("%s: %lld image%s, %lld channel%s, ", split, (long long)data->n, data->n == 1 ? "" : "s",
           (long long)data->channels, data->channels == 1 ? "" : "s");
    if (data->height)
        printf("%lldx%lld\n", (long long)data->height, (long long)data->width);
    else
        printf("sizes vary\n");
}

static cvy_status print_classes(const struct cvy_dataset *data) {
    struct cvy_text text = {0};
    char *line;
    cvy_text_printf(&text, "%lld class%s:", (long long)data->n_classes, data->n_classes == 1 ? "" : "es");
    for (int64_t k = 0; k < data->n_classes; k++) {
        cvy_text_printf(&text, " ");
        cvy_text_escape(&text, cvy_dataset_class_name(data, k));
    }
    CVY_TRY(cvy_text_take(&text, &line));
    puts(line);
    free(line);
    return CVY_OK;
}

static cvy_status print_spec(const char *spec, const cvy_log_sink *log) {
    cvy_dataset *train = NULL, *val = NULL;
    cvy_status status;
    CVY_TRY_OUT(cvy_dataset_open(spec, CVY_SPLIT_TRAIN, log, &train));
    CVY_TRY_OUT(cvy_dataset_open(spec, CVY_SPLIT_VAL, log, &val));
    print_split(train, "training");
    print_split(val, "validation");
    CVY_TRY_OUT(print_classes(train));
out:
    cvy_dataset_free(train);
    cvy_dataset_free(val);
    return status;
}

/* A format, or a command of two words, "data WORD", that was misspelt? */
static cvy_status check_word(const char *word) {
    enum { MAX_WORDS = 16 };
    const char *words[MAX_WORDS];
    size_t n, n_words = 0;
    const struct command *const *table = command_table(&n);
    if (cvy_format_find(word))
        return CVY_OK;
    for (size_t i = 0; i < n && n_words < MAX_WORDS; i++)
        if (strncmp(table[i]->name, "data ", 5) == 0)
            words[n_words++] = table[i]->name + 5;
    const char *near = cvy_nearest(word, words, n_words);
    return near ? CVY_FAIL(CVY_ERR_USAGE, "unknown command 'data %s'; did you mean 'data %s'?", word, near)
                : CVY_OK;
}

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    if (!values->rest.n)
        print_formats();
    else
        CVY_TRY(check_word(values->rest.data[0]));
    for (size_t i = 0; i < values->rest.n; i++)
        CVY_TRY(print_spec(values->rest.data[i], log));
    return CVY_OK;
}

static const struct flag_group *const groups[] = {&group_common, NULL};

const struct command command_data = {
    .name = "data",
    .usage = "[SPEC...]",
    .help = "list the formats of data sets, or say what a data set holds",
    .groups = groups,
    .run = run,
};

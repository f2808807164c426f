/* What the benchmarks share: settings NAME=VALUE on the command line, and one synthetic batch with the graph of a
   model's loss on it. */
#ifndef CVY_BENCH_SETTINGS_H
#define CVY_BENCH_SETTINGS_H

#include "base/status.h"

#include <convoy/convoy.h>

#include <stdio.h>
#include <string.h>

struct setting {
    const char *name, *value;
};

static inline const char *setting_get(const struct setting *settings, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(settings[i].name, name) == 0)
            return settings[i].value;
    return "";
}

/* The arguments over the defaults that `settings` holds. The values stay argv's. */
static inline cvy_status settings_read(struct setting *settings, int n, int argc, char **argv) {
    for (int a = 1; a < argc; a++) {
        size_t length = strcspn(argv[a], "=");
        int i = 0;
        while (i < n && (strncmp(settings[i].name, argv[a], length) != 0 || settings[i].name[length]))
            i++;
        if (i == n || !argv[a][length])
            return CVY_FAIL(CVY_ERR_USAGE, "'%s': no such setting; see the top of the program's source",
                            argv[a]);
        settings[i].value = argv[a] + length + 1;
    }
    return CVY_OK;
}

/* The number that `format` reads of a line of /proc/self/status, such as "VmRSS: %lf kB"; 0: there is none. */
static inline double process_kib(const char *format) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    double kib = 0;
    while (file && fgets(line, sizeof line, file))
        sscanf(line, format, &kib);
    if (file)
        fclose(file);
    return kib;
}

struct task {
    cvy_dataset *dataset;
    cvy_loader *loader;
    cvy_graph *graph;
    cvy_batch images; /* the loader's */
};

static inline cvy_status task_open(struct task *task, const char *model, const char *input, int64_t classes,
                                   int64_t batch) {
    char spec[128];
    snprintf(spec, sizeof spec, "synthetic:%s,classes=%lld,images=%lld", input, (long long)classes,
             (long long)batch);
    CVY_TRY(cvy_dataset_open(spec, CVY_SPLIT_TRAIN, NULL, &task->dataset));
    cvy_loader_options options;
    cvy_loader_defaults(&options);
    options.batch_size = batch;
    CVY_TRY(cvy_loader_new(task->dataset, &options, &task->loader));
    CVY_TRY(cvy_loader_start(task->loader, 0));
    CVY_TRY(cvy_loader_next(task->loader, &task->images));
    CVY_TRY(cvy_graph_new(&task->graph));
    cvy_value x =
        cvy_input(task->graph, "images", task->images.channels, task->images.height, task->images.width);
    cvy_value logits = cvy_model(task->graph, model, x, classes);
    cvy_output(task->graph, "logits", logits);
    cvy_output(task->graph, "loss", cvy_cross_entropy(task->graph, logits, cvy_labels(task->graph), 0));
    return cvy_graph_status(task->graph);
}

static inline void task_free(struct task *task) {
    cvy_graph_free(task->graph);
    cvy_loader_free(task->loader);
    cvy_dataset_free(task->dataset);
}

#endif

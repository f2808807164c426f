/* Image files to class names: decoded, prepared as the weights' card says, softmax over the logits. */
#include "cli/predict.h"
#include "data/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct guess {
    int64_t class;
    double probability;
};

static int more_probable_first(const void *a, const void *b) {
    const struct guess *x = a, *y = b;
    if (x->probability != y->probability)
        return x->probability < y->probability ? 1 : -1;
    return (x->class > y->class) - (x->class < y->class);
}

/* exp(l - max) / sum, sorted. */
static void rank(const float *logits, int64_t n, struct guess *out) {
    double max = logits[0], sum = 0;
    for (int64_t k = 1; k < n; k++)
        max = fmax(max, logits[k]);
    for (int64_t k = 0; k < n; k++)
        sum += exp(logits[k] - max);
    for (int64_t k = 0; k < n; k++)
        out[k] = (struct guess){.class = k, .probability = exp(logits[k] - max) / sum};
    qsort(out, (size_t)n, sizeof *out, more_probable_first);
}

static void class_name(const struct cvy_card *card, int64_t k, char out[256]) {
    if (k < card->n_names)
        snprintf(out, 256, "%s", card->names[k]);
    else
        snprintf(out, 256, "%lld", (long long)k);
}

static void print_guesses(const struct prediction *p, const char *path, const struct guess *guesses,
                          int64_t n) {
    char name[256];
    printf("%s:", path);
    for (int64_t i = 0; i < n; i++) {
        class_name(&p->card, guesses[i].class, name);
        printf("%s %s %.2f %%", i ? "," : "", name, 100 * guesses[i].probability);
    }
    printf("\n");
}

static json_t *guesses_to_json(const struct prediction *p, const char *path, const struct guess *guesses,
                               int64_t n) {
    json_t *list = json_array();
    char name[256];
    for (int64_t i = 0; i < n; i++) {
        class_name(&p->card, guesses[i].class, name);
        json_array_append_new(list,
                              json_pack("{s:s, s:I, s:f}", "class", name, "index",
                                        (json_int_t)guesses[i].class, "probability", guesses[i].probability));
    }
    return json_pack("{s:s, s:o}", "file", path, "classes", list);
}

/* All batches of the task; results go to `list`, or to stdout when it is NULL. */
static cvy_status predict_all(struct prediction *p, const char *const *paths, json_t *list) {
    int64_t n_classes = p->task.options.num_classes;
    int64_t n_shown = p->flags->topk < n_classes ? p->flags->topk : n_classes;
    float *logits = NULL;
    struct guess *guesses = NULL;
    cvy_batch batch;
    cvy_status status;
    CVY_TRY_OUT(CVY_ALLOC(logits, (size_t)(p->task.options.loader.batch_size * n_classes)));
    CVY_TRY_OUT(CVY_ALLOC(guesses, (size_t)n_classes));
    CVY_TRY_OUT(cvy_loader_start(p->task.val_loader, 0));
    while ((status = cvy_loader_next(p->task.val_loader, &batch)) == CVY_OK) {
        batch.labels = NULL;
        CVY_TRY_OUT(cvy_evaluate(p->task.session, &batch, NULL, NULL, logits));
        for (int64_t i = 0; i < batch.n; i++) {
            const char *path = paths[batch.indices[i]];
            rank(logits + i * n_classes, n_classes, guesses);
            if (list)
                json_array_append_new(list, guesses_to_json(p, path, guesses, n_shown));
            else
                print_guesses(p, path, guesses, n_shown);
        }
    }
    status = status == CVY_END ? CVY_OK : status;
out:
    free(logits);
    free(guesses);
    return status;
}

cvy_status predict_images(struct prediction *p, const char *const *paths, int64_t n) {
    cvy_dataset *images;
    cvy_card_complete(&p->card, &p->options);
    CVY_TRY(cvy_dataset_open_files(paths, n, &images));
    CVY_TRY(cvy_task_open(&p->task, &p->options, images));
    if (!p->task.model->is_classifier)
        return CVY_FAIL(CVY_ERR_USAGE, "model '%s' is no classifier: its output names no class",
                        p->task.model->name);
    CVY_TRY(cvy_task_start(&p->task));
    CVY_TRY(cvy_task_load_weights(&p->task, p->weights));
    json_t *list = p->flags->json == 1 ? json_array() : NULL;
    cvy_status status = predict_all(p, paths, list);
    if (status == CVY_OK && list)
        return command_print_json(list);
    json_decref(list);
    return status;
}

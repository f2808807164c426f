/* Image files to class names: decoded, prepared as the weights' card says, softmax over the logits. */
#include "cli/predict.h"
#include "data/bad_list.h"
#include "data/data.h"
#include "data/loader.h"
#include "engine/softmax.h"

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

static void sort_guesses(const float *logits, int64_t n, struct guess *out) {
    const struct cvy_softmax softmax = cvy_softmax_of(logits, n);
    for (int64_t k = 0; k < n; k++)
        out[k] = (struct guess){.class = k, .probability = cvy_softmax_probability(&softmax, logits[k])};
    qsort(out, (size_t)n, sizeof *out, more_probable_first);
}

enum { NUMBER = 24 }; /* letters of an int64_t */

/* The class's name, or its number, which is written to `number`. */
static const char *class_name(const struct cvy_card *card, int64_t k, char number[NUMBER]) {
    if (k < card->n_names)
        return card->names[k];
    snprintf(number, NUMBER, "%lld", (long long)k);
    return number;
}

static cvy_status print_guesses(const struct prediction *p, const char *path, const struct guess *guesses,
                                int64_t n) {
    struct cvy_text text = {0};
    char number[NUMBER], *line;
    cvy_text_escape(&text, path);
    for (int64_t i = 0; i < n; i++) {
        cvy_text_printf(&text, "%s ", i ? "," : ":");
        cvy_text_escape(&text, class_name(&p->card, guesses[i].class, number));
        cvy_text_printf(&text, " %.2f %%", 100 * guesses[i].probability);
    }
    CVY_TRY(cvy_text_take(&text, &line));
    puts(line);
    free(line);
    return CVY_OK;
}

/* JSON holds any UTF-8, but no other file names: of those, the bytes that are none are escaped. */
static json_t *path_to_json(const char *path) {
    if (cvy_is_utf8(path))
        return json_string(path);
    struct cvy_text text = {0};
    char *escaped;
    cvy_text_escape(&text, path);
    if (cvy_text_take(&text, &escaped) != CVY_OK)
        return NULL;
    json_t *json = json_string(escaped);
    free(escaped);
    return json;
}

/* {"file": "a.png", "classes": [{"class": "cat", "index": 0, "probability": 0.9}, …]} is added to `list`. */
static cvy_status list_guesses(const struct prediction *p, const char *path, const struct guess *guesses,
                               int64_t n, json_t *list) {
    json_t *classes = json_array();
    char number[NUMBER];
    bool failed = !classes;
    for (int64_t i = 0; i < n && !failed; i++)
        failed = json_array_append_new(classes, json_pack("{s:s, s:I, s:f}", "class",
                                                          class_name(&p->card, guesses[i].class, number),
                                                          "index", (json_int_t)guesses[i].class,
                                                          "probability", guesses[i].probability)) != 0;
    /* json_pack releases what it was given when it fails */
    json_t *entry = json_pack("{s:o, s:o}", "file", path_to_json(path), "classes", classes);
    if (json_array_append_new(list, entry) != 0 || failed)
        return CVY_FAIL(CVY_ERR_MEMORY, "%s: no memory for its classes", path);
    return CVY_OK;
}

static void say_unread(void *context, const char *reason) {
    (void)context;
    fprintf(stderr, "convoy: no answer: %s\n", reason);
}

/* What could not be read has no answer. */
static cvy_status judge(const struct prediction *p, int64_t n_images) {
    fflush(stdout);
    const int64_t n = cvy_bad_list_tell(cvy_loader_bad(p->task.val_loader), say_unread, NULL);
    return n == 0 ? CVY_OK
                  : CVY_FAIL(CVY_ERR_DATA,
                             "%lld of %lld images could not be read, see above; the others have answers",
                             (long long)n, (long long)n_images);
}

/* All batches of the task; results go to `list`, or to stdout when it is NULL. In the place of an image that cannot be
   read comes another one, a second time, which is passed over. */
static cvy_status predict_all(struct prediction *p, const char *const *paths, json_t *list) {
    int64_t n_classes = p->task.options.num_classes;
    int64_t n_shown = p->flags->topk < n_classes ? p->flags->topk : n_classes;
    float *logits = NULL;
    struct guess *guesses = NULL;
    int64_t n_seen = 0;
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
            if (batch.indices[i] != n_seen++)
                continue;
            CVY_TRY_OUT(predict_check(logits + i * n_classes, n_classes, path));
            sort_guesses(logits + i * n_classes, n_classes, guesses);
            if (list)
                CVY_TRY_OUT(list_guesses(p, path, guesses, n_shown, list));
            else
                CVY_TRY_OUT(print_guesses(p, path, guesses, n_shown));
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
    CVY_TRY(cvy_loader_skip_bad(p->task.val_loader));
    json_t *list = p->flags->json == 1 ? json_array() : NULL;
    if (p->flags->json == 1 && !list)
        return CVY_FAIL(CVY_ERR_MEMORY, "no memory for a list of predictions");
    cvy_status status = predict_all(p, paths, list);
    if (status == CVY_OK && list)
        status = command_print_json(list);
    else
        json_decref(list);
    return status == CVY_OK ? judge(p, n) : status;
}

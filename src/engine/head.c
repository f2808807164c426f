/* Weights into a task: all of a file, or all but the head. The head is what depends on the number of classes: the
   parameters that have another shape when the same model is built for one class more. */
#include "engine/session.h"
#include "engine/trainer.h"
#include "graph/weights_file.h"

#include <stdlib.h>

cvy_status cvy_task_load_weights(struct cvy_task *task, const char *path) {
    char *file;
    struct cvy_card card;
    CVY_TRY(cvy_weights_find(path, &file));
    cvy_status status = cvy_card_read(file, &card);
    if (status == CVY_OK) {
        status = cvy_card_check(&card, task, file);
        if (status == CVY_OK)
            status = cvy_load_weights(task->session, file);
        cvy_card_free(&card);
    }
    free(file);
    return status;
}

/* ---- all but the head --------------------------------------------------------------------------------------- */

static cvy_status build(const struct cvy_task *task, int64_t num_classes, cvy_graph **out) {
    const int64_t *input = task->options.input;
    CVY_TRY(cvy_graph_new(out));
    cvy_model(*out, task->options.model, cvy_input(*out, "images", input[0], input[1], input[2]),
              num_classes);
    return cvy_graph_status(*out);
}

struct head {
    cvy_graph *graph[2]; /* for the task's classes, and for one more */
    const char **names;  /* owned by the first */
    size_t n;
};

static void free_head(struct head *head) {
    cvy_graph_free(head->graph[0]);
    cvy_graph_free(head->graph[1]);
    free(head->names);
}

static cvy_status find_head(const struct cvy_task *task, struct head *head) {
    for (int i = 0; i < 2; i++)
        CVY_TRY(build(task, task->options.num_classes + i, &head->graph[i]));
    const struct cvy_graph *g = head->graph[0], *more = head->graph[1];
    CVY_TRY(CVY_ALLOC(head->names, g->values.n));
    for (size_t v = 0; v < g->values.n; v++) {
        const struct cvy_value_info *info = &g->values.data[v];
        cvy_value other = cvy_graph_find(more, info->name);
        bool is_weight = info->kind == CVY_VALUE_PARAM || info->kind == CVY_VALUE_BUFFER;
        if (is_weight &&
            (other == CVY_NONE || !cvy_desc_equal(&cvy_graph_value(more, other)->desc, &info->desc)))
            head->names[head->n++] = info->name;
    }
    if (head->n == 0)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--replace-head: no parameter of model '%s' depends on the number of classes",
                        task->options.model);
    return CVY_OK;
}

/* "fc.weight f32[1000,512] by f32[10,512], …" */
static cvy_status tell(const struct cvy_task *task, const struct head *head, const char *path) {
    struct cvy_weights_file *file;
    struct cvy_text text = {0};
    CVY_TRY(cvy_weights_file_open(path, &file));
    for (size_t i = 0; i < head->n; i++) {
        struct cvy_desc there;
        const void *bytes;
        const struct cvy_graph *g = head->graph[0];
        cvy_text_printf(&text, "%s%s ", i ? ", " : "", head->names[i]);
        if (cvy_weights_file_has(file, head->names[i]) &&
            cvy_weights_file_find(file, head->names[i], &there, &bytes) == CVY_OK) {
            cvy_desc_print(&text, &there);
            cvy_text_printf(&text, " by ");
        }
        cvy_desc_print(&text, &cvy_graph_value(g, cvy_graph_find(g, head->names[i]))->desc);
    }
    cvy_weights_file_free(file);
    cvy_status status = text.status;
    if (status == CVY_OK)
        cvy_log(&task->options.plan.log, CVY_LOG_INFO, "the head is new: %s; the rest is of %s", text.data,
                path);
    cvy_text_free(&text);
    return status;
}

cvy_status cvy_task_load_body(struct cvy_task *task, const char *path) {
    char *file = NULL;
    struct cvy_card card = {0};
    struct head head = {.n = 0};
    cvy_status status;
    CVY_TRY_OUT(cvy_weights_find(path, &file));
    CVY_TRY_OUT(cvy_card_read(file, &card));
    CVY_TRY_OUT(cvy_card_check_model(&card, task, file));
    CVY_TRY_OUT(find_head(task, &head));
    CVY_TRY_OUT(cvy_session_load_body(task->session, file, head.names, head.n));
    CVY_TRY_OUT(tell(task, &head, file));
out:
    free_head(&head);
    cvy_card_free(&card);
    free(file);
    return status;
}

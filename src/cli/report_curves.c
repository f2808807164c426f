/* The curves of report.html, read from metrics.jsonl: what docs/metrics.md describes. */
#include "cli/report.h"

#include "base/file.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 400, MOST_BYTES = 1 << 30 };

enum { STEP_LOSS, TRAIN_LOSS, VAL_LOSS, EMA_LOSS, N_LOSSES };
enum { TRAIN_TOP1, VAL_TOP1, VAL_TOP5, EMA_TOP1, N_TOPS };

struct curves {
    double n_steps; /* of an epoch */
    struct page_series losses[N_LOSSES], tops[N_TOPS], rate[1], speed[1];
};

/* NAN where the key is missing or null. */
static double number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Nothing where the key is not there: an average of the weights, say, that the run does not keep. */
static cvy_status add(struct page_series *series, double x, const json_t *object, const char *key) {
    return json_object_get(object, key) ? page_series_add(series, x, number(object, key)) : CVY_OK;
}

static cvy_status add_step(struct curves *c, const json_t *o) {
    const double x = number(o, "epoch") + (number(o, "step") + 1) / c->n_steps;
    if (!isfinite(x))
        return CVY_OK;
    CVY_TRY(add(&c->losses[STEP_LOSS], x, o, "loss"));
    CVY_TRY(add(&c->rate[0], x, o, "lr"));
    return add(&c->speed[0], x, o, "images_per_s");
}

static cvy_status add_epoch(struct curves *c, const json_t *o) {
    const double x = number(o, "epoch") + 1;
    if (!isfinite(x))
        return CVY_OK;
    CVY_TRY(add(&c->losses[TRAIN_LOSS], x, o, "train_loss"));
    CVY_TRY(add(&c->losses[VAL_LOSS], x, o, "val_loss"));
    CVY_TRY(add(&c->losses[EMA_LOSS], x, o, "ema_loss"));
    CVY_TRY(add(&c->tops[TRAIN_TOP1], x, o, "train_top1"));
    CVY_TRY(add(&c->tops[VAL_TOP1], x, o, "val_top1"));
    CVY_TRY(add(&c->tops[VAL_TOP5], x, o, "val_top5"));
    return add(&c->tops[EMA_TOP1], x, o, "ema_top1");
}

/* A line that a crash cut off is no JSON, and is passed over. */
static cvy_status read_lines(struct curves *c, char *lines) {
    cvy_status status = CVY_OK;
    char *rest = NULL;
    for (char *line = strtok_r(lines, "\n", &rest); line && status == CVY_OK;
         line = strtok_r(NULL, "\n", &rest)) {
        json_t *object = json_loads(line, 0, NULL);
        const char *event = json_string_value(json_object_get(object, "event"));
        if (event && strcmp(event, "step") == 0)
            status = add_step(c, object);
        else if (event && strcmp(event, "epoch") == 0)
            status = add_epoch(c, object);
        json_decref(object);
    }
    return status;
}

static void draw(struct cvy_text *page, const char *title, const char *unit, struct page_series *series,
                 size_t n) {
    const struct page_chart chart = {
        .title = title, .unit = unit, .x_name = "epochs", .series = series, .n = n};
    for (size_t s = 0; s < n; s++)
        page_series_thin(&series[s], MOST_POINTS);
    page_chart(page, &chart);
}

static void free_series(struct page_series *series, size_t n) {
    for (size_t s = 0; s < n; s++)
        cvy_vec_free(&series[s].points);
}

cvy_status report_curves(struct cvy_text *page, const char *metrics_path, int64_t n_steps) {
    struct curves c = {.n_steps = (double)n_steps,
                       .losses = {{.name = "steps"},
                                  {.name = "training", .is_marked = true},
                                  {.name = "validation", .is_marked = true},
                                  {.name = "averaged weights", .is_marked = true}},
                       .tops = {{.name = "training", .is_marked = true},
                                {.name = "validation", .is_marked = true},
                                {.name = "validation, top-5", .is_marked = true},
                                {.name = "averaged weights", .is_marked = true}},
                       .rate = {{.name = "rate"}},
                       .speed = {{.name = "steps"}}};
    char *lines = NULL;
    size_t n_bytes;
    CVY_TRY(cvy_read_file(metrics_path, MOST_BYTES, &lines, &n_bytes));
    cvy_status status = read_lines(&c, lines);
    free(lines);
    if (status == CVY_OK) {
        cvy_text_printf(page, "<h2>Curves</h2>\n<div class=\"row\">\n");
        draw(page, "Loss", "", c.losses, N_LOSSES);
        draw(page, "Accuracy", "top-1, %", c.tops, N_TOPS);
        draw(page, "Learning rate", "", c.rate, 1);
        draw(page, "Speed", "images/s, loading included", c.speed, 1);
        cvy_text_printf(page, "</div>\n");
    }
    free_series(c.losses, N_LOSSES);
    free_series(c.tops, N_TOPS);
    free_series(c.rate, 1);
    free_series(c.speed, 1);
    return status;
}

/* See bench.h. */
#include "engine/bench.h"

#include "base/thread.h"
#include "engine/event_kind.h"
#include "ops/conv_algo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_WARM_UP = 3 };
static const double RATE = 0.01; /* small: the same batch again and again, and no loss that is not finite */

#define LL(x) ((long long)(x))

/* ---- opening ------------------------------------------------------------------------------------------- */

/* As many synthetic images as a batch has. */
static cvy_status settle(struct cvy_bench *b, struct cvy_task_options *o) {
    const struct cvy_model *model = o->model ? cvy_model_find(o->model) : NULL;
    struct cvy_text spec = {0};
    if (!o->model)
        return CVY_FAIL(CVY_ERR_USAGE, "no model is named: give --model NAME; `convoy models` lists them");
    if (!model)
        return cvy_model_unknown(o->model);
    if (!o->input[0])
        memcpy(o->input, (int64_t[3]){model->channels, model->height, model->width}, sizeof o->input);
    if (!o->num_classes)
        o->num_classes = model->num_classes;
    cvy_text_printf(&spec, "synthetic:%lldx%lldx%lld,classes=%lld,images=%lld", LL(o->input[0]),
                    LL(o->input[1]), LL(o->input[2]), LL(o->num_classes), LL(o->loader.batch_size));
    CVY_TRY(cvy_text_take(&spec, &b->data));
    o->data = b->data;
    o->kind = CVY_TASK_TRAIN;
    o->plan.timeline = true;
    return CVY_OK;
}

static cvy_status open_task(struct cvy_bench *b, const struct cvy_bench_options *options) {
    struct cvy_task_options o = options->task;
    CVY_TRY(settle(b, &o));
    CVY_TRY(cvy_task_open(&b->task, &o, NULL));
    CVY_TRY(cvy_session_new(b->task.plan, &b->task.session));
    CVY_TRY(cvy_session_prepare(b->task.session, o.loader.batch_size, true, false));
    b->steps = options->steps;
    b->images = o.loader.batch_size * b->task.plan->options.accumulate;
    b->trace = options->has_trace ? json_array() : NULL;
    CVY_TRY(CVY_ALLOC(b->step_s, (size_t)b->steps));
    return CVY_ALLOC(b->busy_s, (size_t)b->task.plan->team.n);
}

/* ---- steps --------------------------------------------------------------------------------------------- */

static bool is_same(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static cvy_status add_event(struct cvy_bench *b, int device, const struct cvy_event *event) {
    double s = (double)(event->end_ns - event->start_ns) * 1e-9;
    const enum cvy_event_kind kind = cvy_kind_of_event(event);
    b->busy_s[device] += kind == CVY_KIND_IDLE || kind == CVY_KIND_REDUCE ? 0 : s;
    b->kernel_s += event->name ? s : 0;
    for (size_t i = 0; i < b->parts.n; i++) {
        struct cvy_bench_part *part = &b->parts.data[i];
        if (is_same(part->what, event->what) && is_same(part->layer, event->name)) {
            part->s += s;
            return CVY_OK;
        }
    }
    const struct cvy_bench_part part = {event->what, event->name, s};
    return cvy_vec_push(&b->parts, part);
}

/* Takes what the devices recorded of step i, which began at start_ns; of a step to warm up nothing. */
static cvy_status collect(struct cvy_bench *b, int64_t i, int64_t start_ns) {
    for (int w = 0; w < b->task.plan->team.n; w++) {
        struct cvy_worker *worker = &b->task.plan->team.workers[w];
        const struct cvy_event *event;
        if (worker->timeline.n > worker->timeline.cap)
            return CVY_FAIL(CVY_ERR_UNSUPPORTED,
                            "a step has %zu events on %s, more than the %zu that are kept: take fewer shards",
                            worker->timeline.n, worker->device->name, worker->timeline.cap);
        for (size_t e = 0; i >= 0 && (event = cvy_timeline_get(&worker->timeline, e)); e++)
            CVY_TRY(add_event(b, w, event));
        const struct cvy_track track = {0, w, w};
        if (i >= 0 && b->trace)
            CVY_TRY(cvy_timeline_name(0, w, worker->device->name, b->trace));
        if (i >= 0 && b->trace)
            CVY_TRY(cvy_timeline_export(&worker->timeline, &track, i, start_ns, b->trace));
        cvy_timeline_clear(&worker->timeline);
    }
    return CVY_OK;
}

static cvy_status run_steps(struct cvy_bench *b) {
    cvy_batch batch;
    CVY_TRY(cvy_loader_start(b->task.train_loader, 0));
    CVY_TRY(cvy_loader_next(b->task.train_loader, &batch));
    batch.n_update = b->images;
    cvy_session_set_lr(b->task.session, RATE);
    for (int64_t i = -N_WARM_UP; i < b->steps; i++) {
        int64_t start_ns = cvy_now_ns();
        for (int64_t k = 0; k < b->task.plan->options.accumulate; k++)
            CVY_TRY(cvy_step(b->task.session, &batch));
        double s = (double)(cvy_now_ns() - start_ns) * 1e-9;
        if (i >= 0) {
            b->step_s[i] = s;
            b->device_s += s * b->task.plan->team.n;
        }
        CVY_TRY(collect(b, i, start_ns));
    }
    return CVY_OK;
}

static int by_time(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

cvy_status cvy_bench_run(struct cvy_bench *bench, const struct cvy_bench_options *options) {
    int64_t start_ns = cvy_now_ns();
    CVY_TRY(open_task(bench, options));
    bench->ready_s = (double)(cvy_now_ns() - start_ns) * 1e-9;
    CVY_TRY(run_steps(bench));
    qsort(bench->step_s, (size_t)bench->steps, sizeof *bench->step_s, by_time);
    return CVY_OK;
}

void cvy_bench_close(struct cvy_bench *bench) {
    cvy_task_free(&bench->task);
    cvy_vec_free(&bench->parts);
    json_decref(bench->trace);
    free(bench->data);
    free(bench->step_s);
    free(bench->busy_s);
    *bench = (struct cvy_bench){0};
}

/* ---- what came out ------------------------------------------------------------------------------------- */

double cvy_bench_quantile(const struct cvy_bench *bench, double p) {
    return bench->step_s[(int64_t)(p * (double)(bench->steps - 1) + 0.5)];
}

/* Operands of each pass's input and output: of the inputs, or -1, the output. */
static const struct {
    const char *op;
    enum cvy_conv_pass pass;
    int x, y;
} passes[] = {{"conv2d", CVY_CONV_FORWARD, 0, -1},
              {"conv2d_backward_data", CVY_CONV_BACKWARD_DATA, -1, 0},
              {"conv2d_backward_weights", CVY_CONV_BACKWARD_WEIGHTS, 1, 0}};

static const struct cvy_shape *shape_of(const struct cvy_graph *g, const struct cvy_node *node, int operand) {
    return &cvy_graph_value(g, operand < 0 ? node->out[0] : node->in[operand])->desc.shape;
}

bool cvy_bench_convolution(const struct cvy_bench *bench, const struct cvy_bench_part *part,
                           struct cvy_text *out) {
    const struct cvy_graph *g = bench->task.plan->train;
    size_t p = 0, i = 0;
    while (p < sizeof passes / sizeof *passes && strcmp(passes[p].op, part->what) != 0)
        p++;
    if (p == sizeof passes / sizeof *passes || !part->layer)
        return false;
    while (i < g->nodes.n && (strcmp(g->nodes.data[i].op->name, part->what) != 0 ||
                              strcmp(g->nodes.data[i].name, part->layer) != 0))
        i++;
    if (i == g->nodes.n || !cvy_conv_can_winograd(g->nodes.data[i].attrs))
        return false;
    const struct cvy_shape *x = shape_of(g, &g->nodes.data[i], passes[p].x);
    const struct cvy_shape *y = shape_of(g, &g->nodes.data[i], passes[p].y);
    const struct cvy_conv_key key = {.pass = passes[p].pass,
                                     .batch = bench->task.plan->rule_batch,
                                     .in_channels = x->dim[1],
                                     .out_channels = y->dim[1],
                                     .out_height = y->dim[2],
                                     .out_width = y->dim[3]};
    cvy_conv_key_print(&key, out);
    return true;
}

size_t cvy_peak_memory(void) {
    char line[256];
    unsigned long kb = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %lu kB", &kb) == 1)
            break;
    if (file)
        fclose(file);
    return (size_t)kb * 1024;
}

/* How fast one training step is, and where its time goes.
 *
 *   usage: step [NAME=VALUE]…   model=resnet18_cifar input=3x32x32 classes=10 batch=128 devices=cpu:0-1
 *                               strategy=ddp mesh= schedule= shards=0 threads=0 algo=auto steps=20 timeline=
 *
 * One synthetic batch is trained on again and again, so loading is not part of it. Prints images/s over the steps
 * after the first three; then, from the timeline, the time of each operator and instruction kind per image:
 * busy time of all devices together, so that figures of one and of several devices compare. timeline=FILE also writes
 * every event of these steps there, for tools/draw_timeline, chrome://tracing or ui.perfetto.dev.
 */
#include "engine/plan.h"
#include "engine/session.h"
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_WARM_UP = 3, MAX_KINDS = 128, MAX_DEVICES = 256 };

static const struct setting DEFAULTS[] = {
    {"model", "resnet18_cifar"},
    {"input", "3x32x32"},
    {"classes", "10"},
    {"batch", "128"},
    {"devices", "cpu:0-1"},
    {"strategy", "ddp"},
    {"mesh", ""},
    {"schedule", ""},
    {"shards", "0"},
    {"threads", "0"},
    {"algo", "auto"},
    {"steps", "20"},
    {"timeline", ""},
};
enum { N_SETTINGS = sizeof DEFAULTS / sizeof *DEFAULTS };

struct bench {
    struct setting settings[N_SETTINGS];
    int64_t classes, batch, steps;
    struct task task;
    cvy_plan *plan;
    cvy_session *session;
    int64_t start_ns; /* of main */
    double plan_s, session_s, ready_s;
    double *step_s; /* `steps` of them */
    json_t *events; /* of all steps, with timeline=FILE; else NULL */
    struct kind {
        const char *name;
        double s;
    } kinds[MAX_KINDS];
    int n_kinds;
    double busy_s[MAX_DEVICES]; /* of each device: not in recv, wait or check */
};

static const char *get(const struct bench *b, const char *name) {
    return setting_get(b->settings, N_SETTINGS, name);
}

/* NULL where it is left empty: the plan's default. */
static const char *get_or_default(const struct bench *b, const char *name) {
    return *get(b, name) ? get(b, name) : NULL;
}

static cvy_status read_arguments(struct bench *b, int argc, char **argv) {
    memcpy(b->settings, DEFAULTS, sizeof DEFAULTS);
    CVY_TRY(settings_read(b->settings, N_SETTINGS, argc, argv));
    b->classes = atoll(get(b, "classes"));
    b->batch = atoll(get(b, "batch"));
    b->steps = atoll(get(b, "steps"));
    if (b->classes < 1 || b->batch < 1 || b->steps < 1)
        return CVY_FAIL(CVY_ERR_USAGE, "classes, batch and steps must be at least 1");
    b->events = *get(b, "timeline") ? json_array() : NULL;
    return CVY_ALLOC(b->step_s, (size_t)b->steps);
}

static cvy_status open_session(struct bench *b) {
    const cvy_plan_options options = {
        .devices = get(b, "devices"),
        .strategy = get(b, "strategy"),
        .mesh = get_or_default(b, "mesh"),
        .schedule = get_or_default(b, "schedule"),
        .batch_size = b->batch,
        .shards = atoll(get(b, "shards")),
        .threads_per_device = atoi(get(b, "threads")),
        .conv_algo = get(b, "algo"),
        .optimizer = "sgd",
        .optimizer_attributes = "momentum=0.9 weight_decay=5e-4",
        .timeline = true,
    };
    int64_t start = cvy_now_ns();
    CVY_TRY(cvy_plan_new(b->task.graph, &options, &b->plan));
    int64_t planned = cvy_now_ns();
    CVY_TRY(cvy_session_new(b->plan, &b->session));
    CVY_TRY(cvy_session_prepare(b->session, b->batch, true, false));
    b->plan_s = (double)(planned - start) * 1e-9;
    b->session_s = (double)(cvy_now_ns() - planned) * 1e-9;
    b->ready_s = (double)(cvy_now_ns() - b->start_ns) * 1e-9;
    return CVY_OK;
}

static bool is_waiting(const char *what) {
    return strcmp(what, "recv") == 0 || strcmp(what, "wait") == 0 || strcmp(what, "check") == 0;
}

static void add_event(struct bench *b, int device, const struct cvy_event *event) {
    double s = (double)(event->end_ns - event->start_ns) * 1e-9;
    int k = 0;
    b->busy_s[device] += is_waiting(event->what) ? 0 : s;
    while (k < b->n_kinds && strcmp(b->kinds[k].name, event->what) != 0)
        k++;
    if (k == b->n_kinds && k < MAX_KINDS)
        b->kinds[b->n_kinds++] = (struct kind){.name = event->what};
    if (k < MAX_KINDS)
        b->kinds[k].s += s;
}

/* Takes what the devices recorded of step i, which began at start_ns; of a step to warm up nothing. */
static cvy_status collect(struct bench *b, int64_t i, int64_t start_ns) {
    for (int w = 0; w < b->plan->team.n; w++) {
        struct cvy_worker *worker = &b->plan->team.workers[w];
        const struct cvy_event *event;
        for (size_t e = 0; i >= 0 && (event = cvy_timeline_get(&worker->timeline, e)); e++)
            add_event(b, w, event);
        if (i >= 0 && b->events)
            CVY_TRY(cvy_timeline_export(&worker->timeline, w, worker->device->name, i, start_ns, b->events));
        cvy_timeline_clear(&worker->timeline);
    }
    return CVY_OK;
}

static cvy_status run_steps(struct bench *b) {
    cvy_session_set_lr(b->session, 0.01);
    for (int64_t i = -N_WARM_UP; i < b->steps; i++) {
        int64_t start = cvy_now_ns();
        CVY_TRY(cvy_step(b->session, &b->task.images));
        if (i >= 0)
            b->step_s[i] = (double)(cvy_now_ns() - start) * 1e-9;
        CVY_TRY(collect(b, i, start));
    }
    return CVY_OK;
}

static int by_time(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int by_share(const void *a, const void *b) {
    double x = ((const struct kind *)a)->s, y = ((const struct kind *)b)->s;
    return (x < y) - (x > y);
}

static void print(struct bench *b) {
    struct cvy_plan_facts facts;
    cvy_plan_facts(b->plan, &facts);
    printf("%s, input %s, batch %lld, %s on %s, S=%lld T=%d, conv-algo %s, arena %.0f MB\n", get(b, "model"),
           get(b, "input"), (long long)b->batch, facts.strategy, facts.devices, (long long)facts.shards,
           facts.threads, facts.conv_algo, (double)facts.arena_bytes * 1e-6);
    printf("set-up: plan %.3f s, session %.3f s of which first touch of pages %.3f s\n", b->plan_s,
           b->session_s, cvy_session_touch_s(b->session));
    qsort(b->step_s, (size_t)b->steps, sizeof *b->step_s, by_time);
    double median = b->step_s[b->steps / 2];
    printf("images/s: median %.1f, best %.1f, worst %.1f of %lld steps\n", (double)b->batch / median,
           (double)b->batch / b->step_s[0], (double)b->batch / b->step_s[b->steps - 1], (long long)b->steps);

    double total = 0, conv = 0, images = (double)(b->batch * b->steps);
    qsort(b->kinds, (size_t)b->n_kinds, sizeof *b->kinds, by_share);
    for (int k = 0; k < b->n_kinds; k++) {
        total += b->kinds[k].s;
        if (strncmp(b->kinds[k].name, "conv2d", 6) == 0)
            conv += b->kinds[k].s;
    }
    printf("busy:");
    for (int w = 0; w < b->plan->team.n; w++)
        printf(" %s %.0f us an image", b->plan->team.workers[w].device->name, b->busy_s[w] / images * 1e6);
    printf("\ndevice time per image, all devices together:\n");
    for (int k = 0; k < b->n_kinds; k++)
        printf("  %-28s %10.1f us %6.1f %%\n", b->kinds[k].name, b->kinds[k].s / images * 1e6,
               b->kinds[k].s / total * 100);
    printf("  %-28s %10.1f us\n", "outside convolution", (total - conv) / images * 1e6);
}

/* Every step's time is counted from its own beginning. */
static cvy_status write_timeline(struct bench *b) {
    const char *path = get(b, "timeline");
    struct cvy_plan_facts facts;
    if (!b->events)
        return CVY_OK;
    cvy_plan_facts(b->plan, &facts);
    json_t *root = json_pack("{s:{s:s, s:s, s:s, s:s, s:I, s:I, s:i}, s:O}", "otherData", "model",
                             get(b, "model"), "strategy", facts.strategy, "schedule", get(b, "schedule"),
                             "devices", facts.devices, "batch", (json_int_t)b->batch, "shards",
                             (json_int_t)facts.shards, "threads", facts.threads, "traceEvents", b->events);
    int result = root ? json_dump_file(root, path, JSON_COMPACT | JSON_REAL_PRECISION(12)) : -1;
    json_decref(root);
    return result == 0 ? CVY_OK : CVY_FAIL(CVY_ERR_IO, "%s: cannot be written", path);
}

int main(int argc, char **argv) {
    struct bench b = {.start_ns = cvy_now_ns()};
    cvy_status status = read_arguments(&b, argc, argv);
    if (status == CVY_OK)
        status = task_open(&b.task, get(&b, "model"), get(&b, "input"), b.classes, b.batch);
    if (status == CVY_OK)
        status = open_session(&b);
    if (status == CVY_OK)
        status = run_steps(&b);
    if (status == CVY_OK)
        status = write_timeline(&b);
    if (status == CVY_OK)
        print(&b);
    else
        fprintf(stderr, "step: %s\n", cvy_error());
    cvy_session_free(b.session);
    cvy_plan_free(b.plan);
    json_decref(b.events);
    task_free(&b.task);
    free(b.step_s);
    return cvy_exit_code(status);
}

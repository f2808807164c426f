/* What a data parallel step costs beside its kernels.
 *
 *   usage: overhead [NAME=VALUE]…   model=resnet18_cifar input=3x32x32 classes=10 batch=128 devices=cpu:0-1
 *                                   strategy=ddp shards=0 threads=1 algo=auto steps=20
 *
 * From the timeline of each step, which lasts from the call of cvy_step to its return. For one device:
 *   kernels        operators, loading of images, local additions
 *   communication  in a meeting of the devices (the wait for a bucket, a broadcast): from when the last of them came.
 *                  They add up a bucket in that wait, so this is what the backward pass does not hide
 *   waiting        in a meeting until the last came; and, done with the step, until the last is done. That is the
 *                  slower core's fault, or the machine's
 *   overhead       all that is left: the executor between the kernels, waking the threads, checking the loss
 * Prints the medians over the steps of the mean over the devices, as shares of the step. One synthetic batch is trained
 * on again and again, so loading is not part of it. For a quiet machine.
 */
#include "engine/plan.h"
#include "engine/session.h"
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_WARM_UP = 3, MAX_MEETINGS = 1024 };

static const struct setting DEFAULTS[] = {
    {"model", "resnet18_cifar"},
    {"input", "3x32x32"},
    {"classes", "10"},
    {"batch", "128"},
    {"devices", "cpu:0-1"},
    {"strategy", "ddp"},
    {"shards", "0"},
    {"threads", "1"},
    {"algo", "auto"},
    {"steps", "20"},
};
enum { N_SETTINGS = sizeof DEFAULTS / sizeof *DEFAULTS };

enum part { KERNELS, COMMUNICATION, WAITING, OVERHEAD, STEP, N_PARTS };

struct bench {
    struct setting settings[N_SETTINGS];
    int64_t steps;
    struct task task;
    cvy_plan *plan;
    cvy_session *session;
    double *parts[N_PARTS]; /* ns, per step: mean over the devices */
};

static const char *get(const struct bench *b, const char *name) {
    return setting_get(b->settings, N_SETTINGS, name);
}

static cvy_status open_session(struct bench *b) {
    const cvy_plan_options options = {
        .devices = get(b, "devices"),
        .strategy = get(b, "strategy"),
        .batch_size = b->task.images.n,
        .shards = atoll(get(b, "shards")),
        .threads_per_device = atoi(get(b, "threads")),
        .conv_algo = get(b, "algo"),
        .optimizer = "sgd",
        .optimizer_attributes = "momentum=0.9 weight_decay=5e-4",
        .timeline = true,
    };
    CVY_TRY(cvy_plan_new(b->task.graph, &options, &b->plan));
    if (b->plan->mesh.pipe > 1)
        return CVY_FAIL(CVY_ERR_USAGE, "strategy %s has stages: see bench/strategies for those",
                        b->plan->strategy->name);
    CVY_TRY(cvy_session_new(b->plan, &b->session));
    cvy_session_set_lr(b->session, 0.01);
    return cvy_session_prepare(b->session, b->task.images.n, true, false);
}

/* ---- one step ------------------------------------------------------------------------------------------ */

static bool is_meeting(const struct cvy_event *event) {
    return strcmp(event->what, "wait") == 0 || strcmp(event->what, "broadcast") == 0;
}

/* Instructions that are the executor's own work. */
static bool is_executor(const struct cvy_event *event) {
    return strcmp(event->what, "reduce") == 0 || strcmp(event->what, "check") == 0;
}

static const struct cvy_timeline *timeline_of(const struct bench *b, int device) {
    return &b->plan->team.workers[device].timeline;
}

/* When the last device came to each meeting of the step (all come to all, in the same order; `came` is 0 before), and
   when the last was done with all. */
static cvy_status find_last(const struct bench *b, int64_t *came, int *n_meetings, int64_t *done) {
    *done = 0;
    for (int d = 0; d < b->plan->team.n; d++) {
        const struct cvy_event *event;
        int n = 0;
        for (size_t e = 0; (event = cvy_timeline_get(timeline_of(b, d), e)); e++) {
            *done = event->end_ns > *done ? event->end_ns : *done;
            if (!is_meeting(event))
                continue;
            if (n == MAX_MEETINGS)
                return CVY_FAIL(CVY_ERR_FAILED, "more than %d meetings in a step", MAX_MEETINGS);
            came[n] = event->start_ns > came[n] ? event->start_ns : came[n];
            n++;
        }
        if (d > 0 && n != *n_meetings)
            return CVY_FAIL(CVY_ERR_FAILED, "device %d came to %d meetings, device 0 to %d", d, n,
                            *n_meetings);
        *n_meetings = n;
    }
    return CVY_OK;
}

/* Adds a device's parts of the step from `start` to `end` to `sum`. */
static void add_device(const struct bench *b, int device, const int64_t *came, int64_t done, int64_t start,
                       int64_t end, double sum[N_PARTS]) {
    double parts[N_PARTS] = {[STEP] = (double)(end - start)};
    const struct cvy_event *event;
    int64_t mine = start; /* when this device was done */
    int n = 0;
    for (size_t e = 0; (event = cvy_timeline_get(timeline_of(b, device), e)); e++) {
        mine = event->end_ns;
        if (is_meeting(event)) {
            int64_t last = came[n++];
            last = last < event->end_ns ? last : event->end_ns;
            parts[WAITING] += (double)(last - event->start_ns);
            parts[COMMUNICATION] += (double)(event->end_ns - last);
        } else if (!is_executor(event)) {
            parts[KERNELS] += (double)(event->end_ns - event->start_ns);
        }
    }
    parts[WAITING] += (double)(done - mine);
    parts[OVERHEAD] = parts[STEP] - parts[KERNELS] - parts[COMMUNICATION] - parts[WAITING];
    for (int k = 0; k < N_PARTS; k++)
        sum[k] += parts[k];
}

static cvy_status measure_step(struct bench *b, int64_t i) {
    int64_t came[MAX_MEETINGS] = {0}, done;
    int n_meetings = 0;
    double sum[N_PARTS] = {0};
    for (int d = 0; d < b->plan->team.n; d++)
        cvy_timeline_clear(&b->plan->team.workers[d].timeline);
    int64_t start = cvy_now_ns();
    CVY_TRY(cvy_step(b->session, &b->task.images));
    int64_t end = cvy_now_ns();
    CVY_TRY(find_last(b, came, &n_meetings, &done));
    for (int d = 0; d < b->plan->team.n; d++)
        add_device(b, d, came, done, start, end, sum);
    for (int k = 0; i >= 0 && k < N_PARTS; k++)
        b->parts[k][i] = sum[k] / b->plan->team.n;
    return CVY_OK;
}

/* ---- all ------------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int64_t n) {
    qsort(values, (size_t)n, sizeof *values, by_size);
    return values[n / 2];
}

static void print(struct bench *b) {
    static const char *const names[] = {[KERNELS] = "kernels",
                                        [COMMUNICATION] = "communication not hidden",
                                        [WAITING] = "waiting for the slower device",
                                        [OVERHEAD] = "executor overhead"};
    struct cvy_plan_facts facts;
    cvy_plan_facts(b->plan, &facts);
    double *both = b->parts[STEP]; /* shares: the step's time is needed no more */
    double step = 0;
    for (int64_t i = 0; i < b->steps; i++) {
        for (int k = 0; k < STEP; k++)
            b->parts[k][i] /= b->parts[STEP][i];
        step += b->parts[STEP][i] / (double)b->steps;
        both[i] = b->parts[COMMUNICATION][i] + b->parts[OVERHEAD][i];
    }
    printf("%s, batch %lld, %s on %s, S=%lld T=%d: a step of %.1f ms in the mean of %lld\n", get(b, "model"),
           (long long)b->task.images.n, facts.strategy, facts.devices, (long long)facts.shards, facts.threads,
           step / 1e6, (long long)b->steps);
    for (int k = 0; k < STEP; k++)
        printf("  %-32s %7.2f %%\n", names[k], median(b->parts[k], b->steps) * 100);
    printf("communication and overhead: %.2f %% of the step\n", median(both, b->steps) * 100);
}

static cvy_status run(struct bench *b, int argc, char **argv) {
    memcpy(b->settings, DEFAULTS, sizeof DEFAULTS);
    CVY_TRY(settings_read(b->settings, N_SETTINGS, argc, argv));
    b->steps = atoll(get(b, "steps"));
    if (b->steps < 1)
        return CVY_FAIL(CVY_ERR_USAGE, "steps must be at least 1");
    for (int k = 0; k < N_PARTS; k++)
        CVY_TRY(CVY_ALLOC(b->parts[k], (size_t)b->steps));
    CVY_TRY(task_open(&b->task, get(b, "model"), get(b, "input"), atoll(get(b, "classes")),
                      atoll(get(b, "batch"))));
    CVY_TRY(open_session(b));
    for (int64_t i = -N_WARM_UP; i < b->steps; i++)
        CVY_TRY(measure_step(b, i));
    print(b);
    return CVY_OK;
}

int main(int argc, char **argv) {
    struct bench b = {.steps = 0};
    cvy_status status = run(&b, argc, argv);
    if (status != CVY_OK)
        fprintf(stderr, "overhead: %s\n", cvy_error());
    cvy_session_free(b.session);
    cvy_plan_free(b.plan);
    task_free(&b.task);
    for (int k = 0; k < N_PARTS; k++)
        free(b.parts[k]);
    return cvy_exit_code(status);
}

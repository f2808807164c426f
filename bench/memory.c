/* Is the memory that `convoy explain` predicts what training takes?
 *
 *   usage: memory [NAME=VALUE]…   model=resnet18_cifar input=3x32x32 classes=10 batch=128 devices=cpu:0 strategy=
 *                                 mesh= schedule= shards=0 threads=0 steps=3
 *
 * Makes the plan (kernels included), and then measures by how much VmHWM, the most memory that the process ever had,
 * grows from there: through opening the session, some steps, and an evaluation. What counts is all of the arenas, the
 * messages between stages, and whatever else a step makes the libraries and the transport take; not the batch of
 * images, which is there before. Prints for each process
 *   rank 0 of 1: explained 210.4 MB, VmHWM grew by 212.0 MB: 1.008 times
 * where a process of several devices adds their memories up. Under mpirun every process has `devices`.
 */
#include "engine/plan.h"
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct setting DEFAULTS[] = {
    {"model", "resnet18_cifar"},
    {"input", "3x32x32"},
    {"classes", "10"},
    {"batch", "128"},
    {"devices", "cpu:0"},
    {"strategy", ""},
    {"mesh", ""},
    {"schedule", ""},
    {"shards", "0"},
    {"threads", "0"},
    {"steps", "3"},
};
enum { N_SETTINGS = sizeof DEFAULTS / sizeof *DEFAULTS };

struct bench {
    struct setting settings[N_SETTINGS];
    struct task task;
    cvy_world *world;
    cvy_plan *plan;
    cvy_session *session;
};

static const char *get(const struct bench *b, const char *name) {
    return setting_get(b->settings, N_SETTINGS, name);
}

static const char *get_or_default(const struct bench *b, const char *name) {
    return *get(b, name) ? get(b, name) : NULL;
}

/* Bytes. CVY_ERR_IO where the kernel does not say. */
static cvy_status peak_memory(double *out) {
    double kib = process_kib("VmHWM: %lf kB");
    if (kib == 0)
        return CVY_FAIL(CVY_ERR_IO, "/proc/self/status says no VmHWM");
    *out = kib * 1024;
    return CVY_OK;
}

static cvy_status open_plan(struct bench *b) {
    const cvy_plan_options options = {
        .world = b->world,
        .devices = get(b, "devices"),
        .strategy = get_or_default(b, "strategy"),
        .mesh = get_or_default(b, "mesh"),
        .schedule = get_or_default(b, "schedule"),
        .batch_size = b->task.images.n,
        .shards = atoll(get(b, "shards")),
        .threads_per_device = atoi(get(b, "threads")),
        .optimizer = "sgd",
        .optimizer_attributes = "momentum=0.9 weight_decay=5e-4",
    };
    return cvy_plan_new(b->task.graph, &options, &b->plan);
}

static double explained(const struct bench *b) {
    double total = 0;
    for (int i = 0; i < b->plan->team.n; i++)
        total += (double)cvy_worker_bytes(&b->plan->team.workers[i], false);
    return total;
}

static cvy_status train(struct bench *b) {
    CVY_TRY(cvy_session_new(b->plan, &b->session));
    cvy_session_set_lr(b->session, 0.01);
    for (int64_t i = 0; i < atoll(get(b, "steps")); i++)
        CVY_TRY(cvy_step(b->session, &b->task.images));
    return cvy_evaluate(b->session, &b->task.images, NULL, NULL, NULL);
}

static cvy_status run(struct bench *b, int argc, char **argv) {
    double before = 0, after = 0, promised = 0;
    memcpy(b->settings, DEFAULTS, sizeof DEFAULTS);
    CVY_TRY(settings_read(b->settings, N_SETTINGS, argc, argv));
    CVY_TRY(cvy_world_open(0, NULL, &b->world));
    CVY_TRY(task_open(&b->task, get(b, "model"), get(b, "input"), atoll(get(b, "classes")),
                      atoll(get(b, "batch"))));
    CVY_TRY(open_plan(b));
    promised = explained(b);
    CVY_TRY(peak_memory(&before));
    CVY_TRY(train(b));
    CVY_TRY(peak_memory(&after));
    printf("rank %d of %d: explained %.1f MB, VmHWM grew by %.1f MB: %.3f times\n", cvy_world_rank(b->world),
           cvy_world_size(b->world), promised / 1e6, (after - before) / 1e6, (after - before) / promised);
    return CVY_OK;
}

int main(int argc, char **argv) {
    struct bench b = {.world = NULL};
    cvy_status status = run(&b, argc, argv);
    if (status != CVY_OK)
        fprintf(stderr, "memory: %s\n", cvy_error());
    cvy_session_free(b.session);
    cvy_plan_free(b.plan);
    task_free(&b.task);
    (void)cvy_world_close(b.world, status);
    return cvy_exit_code(status);
}

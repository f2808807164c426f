/* convoy bench step: images/s of a training step, and where its time goes. */
#include "cli/bench.h"
#include "cli/tuning.h"
#include "engine/bench.h"
#include "engine/json_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LL(x) ((long long)(x))

static const struct flag bench_flags[] = {
    {.name = "steps",
     .type = FLAG_INT,
     .offset = offsetof(struct options, steps),
     .help = "steps that are measured; three more come first",
     .initial = "20",
     .min = 1,
     .max = 1 << 20},
};
const struct flag_group group_bench = {.title = "Benchmark", .flags = bench_flags, .n = 1};

static const struct flag trace_flags[] = {
    {.name = "timeline",
     .type = FLAG_TEXT,
     .offset = offsetof(struct options, timeline),
     .help = "write every event of these steps there, for tools/draw_timeline, chrome://tracing and "
             "ui.perfetto.dev",
     .value_name = "FILE",
     .is_not_kept = true,
     .is_own = true},
};
static const struct flag_group group_trace = {.title = "Trace", .flags = trace_flags, .n = 1};

/* ---- by operator --------------------------------------------------------------------------------------- */

/* Parts of one kind, largest first. */
struct kinds {
    CVY_VEC(struct cvy_bench_part) items; /* layer: NULL of an instruction */
    double total, convolution;
};

static int by_share(const void *a, const void *b) {
    double x = ((const struct cvy_bench_part *)a)->s, y = ((const struct cvy_bench_part *)b)->s;
    return (x < y) - (x > y);
}

static cvy_status collect_kinds(const struct cvy_bench *b, struct kinds *out) {
    for (size_t i = 0; i < b->parts.n; i++) {
        const struct cvy_bench_part *part = &b->parts.data[i];
        size_t k = 0;
        while (k < out->items.n && strcmp(out->items.data[k].what, part->what) != 0)
            k++;
        if (k == out->items.n)
            CVY_TRY(cvy_vec_push(&out->items, *part));
        else
            out->items.data[k].s += part->s;
        out->total += part->s;
        out->convolution += strncmp(part->what, "conv2d", 6) == 0 ? part->s : 0;
    }
    if (out->items.n)
        qsort(out->items.data, out->items.n, sizeof *out->items.data, by_share);
    return CVY_OK;
}

/* Share of the devices' time in which none of their operators ran: waiting, communication, the host. */
static double outside_kernels(const struct cvy_bench *b) { return 1 - b->kernel_s / b->device_s; }

static double rate(const struct cvy_bench *b, double p) {
    return (double)b->images / cvy_bench_quantile(b, p);
}

/* ---- as text ------------------------------------------------------------------------------------------- */

static void print_head(const struct cvy_bench *b) {
    const struct cvy_task_options *o = &b->task.options;
    struct cvy_plan_facts f;
    cvy_plan_facts(b->task.plan, &f);
    int n_base = (int)strcspn(f.conv_algo, "+");
    printf("%s, input %lldx%lldx%lld, batch %lld, %s on %s, S=%lld T=%d, conv-algo %.*s%s, amp %s\n",
           o->model, LL(o->input[0]), LL(o->input[1]), LL(o->input[2]), LL(b->images), f.strategy, f.devices,
           LL(f.shards), f.threads, n_base, f.conv_algo, f.conv_algo[n_base] ? " tuned" : "",
           o->plan.amp ? o->plan.amp : "none");
    printf("images/s: median %.1f, middle half %.1f to %.1f, best %.1f, worst %.1f of %lld steps\n",
           rate(b, 0.5), rate(b, 0.75), rate(b, 0.25), rate(b, 0), rate(b, 1), LL(b->steps));
    bool is_host = b->task.plan->backend->is_host_memory;
    printf("memory: peak %.0f MB%s %.0f MB %s; ready in %.2f s, of which %.2f s for its first touch\n",
           (double)cvy_peak_memory() / 1e6, is_host ? ", of which" : " of the host, and",
           (double)f.arena_bytes / 1e6, is_host ? "the arena of each device" : "on each device", b->ready_s,
           cvy_session_touch_s(b->task.session));
}

static void print_kinds(const struct cvy_bench *b, const struct kinds *kinds) {
    double us = 1e6 / (double)(b->images * b->steps);
    bool has_streams = b->task.plan->backend->streams != NULL;
    printf("busy:");
    for (int w = 0; w < b->task.plan->team.n; w++)
        printf(" %s %.0f us an image", b->task.plan->team.workers[w].device->name, b->busy_s[w] * us);
    printf("\n%s per image, all devices%s together:\n",
           has_streams ? "the host's time for enqueuing" : "device time",
           b->task.plan->team.n < b->task.plan->n_devices ? " of this process" : "");
    for (size_t k = 0; k < kinds->items.n; k++)
        printf("  %-28s %10.1f us %6.1f %%\n", kinds->items.data[k].what, kinds->items.data[k].s * us,
               kinds->items.data[k].s / kinds->total * 100);
    printf("  %-28s %10.1f us\n", "outside convolution", (kinds->total - kinds->convolution) * us);
    if (!has_streams)
        printf("outside kernels: %.1f %% of the devices' time\n", outside_kernels(b) * 100);
}

/* ---- as JSON ------------------------------------------------------------------------------------------- */

static json_t *kinds_json(const struct cvy_bench *b, const struct kinds *kinds) {
    double us = 1e6 / (double)(b->images * b->steps);
    json_t *list = json_array();
    for (size_t k = 0; k < kinds->items.n; k++) {
        const struct cvy_bench_part *kind = &kinds->items.data[k];
        json_array_append_new(list, json_pack("{s:s, s:b, s:f}", "name", kind->what, "kernel",
                                              (int)(kind->layer != NULL), "us_per_image", kind->s * us));
    }
    return list;
}

/* Convolutions that have a choice, by pass and shape: {"forward:...": us per image}. */
static json_t *convolutions_json(const struct cvy_bench *b) {
    double us = 1e6 / (double)(b->images * b->steps);
    json_t *object = json_object();
    for (size_t i = 0; i < b->parts.n; i++) {
        struct cvy_text key = {0};
        if (cvy_bench_convolution(b, &b->parts.data[i], &key) && key.status == CVY_OK) {
            double before = json_number_value(json_object_get(object, key.data));
            json_object_set_new(object, key.data, json_real(before + b->parts.data[i].s * us));
        }
        cvy_text_free(&key);
    }
    return object;
}

static json_t *steps_json(const struct cvy_bench *b) {
    json_t *list = json_array();
    for (int64_t i = 0; i < b->steps; i++)
        json_array_append_new(list, json_real(b->step_s[i]));
    return list;
}

static json_t *to_json(const struct cvy_bench *b, const struct kinds *kinds) {
    const struct cvy_task_options *o = &b->task.options;
    struct cvy_plan_facts f;
    cvy_plan_facts(b->task.plan, &f);
    json_t *what = json_pack(
        "{s:s, s:[III], s:I, s:I, s:I, s:s, s:i, s:s, s:s, s:I, s:i, s:s, s:s}", "model", o->model, "input",
        (json_int_t)o->input[0], (json_int_t)o->input[1], (json_int_t)o->input[2], "num_classes",
        (json_int_t)o->num_classes, "batch_size", (json_int_t)o->loader.batch_size, "accumulate",
        (json_int_t)b->task.plan->options.accumulate, "devices", f.devices, "n_processes", f.n_processes,
        "strategy", f.strategy, "backend", f.backend, "shards", (json_int_t)f.shards, "threads_per_device",
        f.threads, "conv_algo", f.conv_algo, "amp", o->plan.amp ? o->plan.amp : "none");
    json_t *result =
        json_pack("{s:f, s:[ff], s:f, s:f, s:o, s:I, s:I, s:f, s:f, s:o, s:o}", "images_per_s", rate(b, 0.5),
                  "images_per_s_middle_half", rate(b, 0.75), rate(b, 0.25), "images_per_s_best", rate(b, 0),
                  "images_per_s_worst", rate(b, 1), "step_s", steps_json(b), "peak_memory_bytes",
                  (json_int_t)cvy_peak_memory(), "arena_bytes", (json_int_t)f.arena_bytes, "ready_s",
                  b->ready_s, "outside_kernels", outside_kernels(b), "operators", kinds_json(b, kinds),
                  "convolutions", convolutions_json(b));
    if (what && result)
        json_object_update(what, result);
    json_decref(result);
    return what;
}

/* ---- the command --------------------------------------------------------------------------------------- */

/* Every step's time is counted from its own beginning. */
static cvy_status write_trace(const struct cvy_bench *b, const char *path) {
    struct cvy_plan_facts f;
    if (!b->trace)
        return CVY_OK;
    cvy_plan_facts(b->task.plan, &f);
    json_t *root = json_pack(
        "{s:{s:s, s:s, s:s, s:s, s:I, s:I, s:i}, s:O}", "otherData", "model", b->task.options.model,
        "strategy", f.strategy, "schedule", b->task.plan->options.schedule, "devices", f.devices, "batch",
        (json_int_t)b->images, "shards", (json_int_t)f.shards, "threads", f.threads, "traceEvents", b->trace);
    return cvy_write_json(path, root, JSON_COMPACT | JSON_REAL_PRECISION(12));
}

static cvy_status report(const struct cvy_bench *b, const struct options *o) {
    struct kinds kinds = {.total = 0};
    cvy_status status = collect_kinds(b, &kinds);
    if (status == CVY_OK && o->json == 1) {
        status = command_print_json(to_json(b, &kinds));
    } else if (status == CVY_OK) {
        print_head(b);
        print_kinds(b, &kinds);
    }
    cvy_vec_free(&kinds.items);
    return status == CVY_OK ? write_trace(b, o->timeline) : status;
}

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    const struct options *o = values->options;
    bool is_writer = cvy_world_rank(o->world) == 0;
    struct cvy_bench_options options = {.steps = o->steps, .has_trace = o->timeline && is_writer};
    struct cvy_bench bench = {.steps = 0};
    cvy_status status = command_no_rest(values);
    if (status == CVY_OK)
        status = options_task(values, CVY_TASK_TRAIN, log, &options.task);
    CVY_TRY(command_agree(values, status));
    status = cvy_bench_run(&bench, &options);
    if (status == CVY_OK)
        status = report(&bench, o);
    cvy_bench_close(&bench);
    return status;
}

static const struct flag_group *const groups[] = {&group_bench,  BENCH_GROUPS,  &group_trace, &group_json,
                                                  &group_tuning, &group_common, NULL};

const struct command command_bench_step = {
    .name = "bench step",
    .usage = "--model NAME [--steps N] [--json] [flags of train]",
    .help = "measure a training step on synthetic images: images/s, memory, time by operator",
    .groups = groups,
    .is_collective = true,
    .run = run,
};

/* See report.h. */
#include "cli/report.h"

#include "base/file.h"
#include "cli/tuning.h"
#include "engine/plan.h"
#include "rt/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LL(x) ((long long)(x))

static void tile(struct cvy_text *page, const char *what, const char *value) {
    cvy_text_printf(page, "<div class=\"tile\"><b>");
    page_text(page, value);
    cvy_text_printf(page, "</b>");
    page_text(page, what);
    cvy_text_printf(page, "</div>\n");
}

static void summary(struct cvy_text *page, const struct cvy_trainer *t, const struct run_result *result) {
    char text[64];
    cvy_text_printf(page, "<div class=\"row\">\n");
    snprintf(text, sizeof text, "%.2f %%", cvy_tally_top1(&t->val));
    tile(page, "top-1 of the validation", text);
    snprintf(text, sizeof text, "%.2f %%", cvy_tally_top5(&t->val));
    tile(page, "top-5", text);
    snprintf(text, sizeof text, "%.4f", cvy_tally_loss(&t->val));
    tile(page, "validation loss", text);
    snprintf(text, sizeof text, "%lld", LL(t->val.n));
    tile(page, "validation images", text);
    snprintf(text, sizeof text, "%lld", LL(t->state.epoch));
    tile(page, "epochs", text);
    snprintf(text, sizeof text, "%.0f", result->images_per_s);
    tile(page, "images/s in training", text);
    cvy_text_printf(page, "</div>\n");
}

static void fact(struct cvy_text *page, const char *what, const char *value) {
    cvy_text_printf(page, "<tr><th>");
    page_text(page, what);
    cvy_text_printf(page, "</th><td>");
    page_text(page, value);
    cvy_text_printf(page, "</td></tr>\n");
}

static cvy_status facts(struct cvy_text *page, const struct cvy_trainer *t, const struct run_result *result) {
    struct cvy_plan_facts f;
    struct cvy_text kind = {0};
    char text[256];
    cvy_plan_facts(t->task.plan, &f);
    cvy_text_printf(page, "<h2>The run</h2>\n<table>\n");
    snprintf(text, sizeof text, "%s, strategy %s, S=%lld T=%d, %d process%s", f.devices, f.strategy,
             LL(f.shards), f.threads, f.n_processes, f.n_processes == 1 ? "" : "es");
    fact(page, "devices", text);
    snprintf(text, sizeof text, "%.1f MB a device", (double)f.arena_bytes / 1e6);
    fact(page, "memory", text);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)result->weights_hash);
    fact(page, "weights, xxh3", text);
    fact(page, "convoy", cvy_version());
    if (t->task.plan->backend->kind)
        t->task.plan->backend->kind(&kind);
    fact(page, "backend", kind.data ? kind.data : f.backend);
    tuning_processor(text);
    fact(page, "processor", text);
    const time_t now = time(NULL);
    struct tm local;
    if (localtime_r(&now, &local) && strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local) > 0)
        fact(page, "written", text);
    cvy_text_printf(page, "</table>\n");
    cvy_status status = kind.status;
    cvy_text_free(&kind);
    return status;
}

static cvy_status settings(struct cvy_text *page, const struct flag_values *values) {
    cvy_text_printf(
        page, "<h2>Settings</h2>\n<details><summary>all flags, as run.json has them</summary>\n<table>\n");
    for (const struct flag_group *const *g = values->groups; *g; g++) {
        for (size_t i = 0; i < (*g)->n; i++) {
            struct cvy_text value = {0};
            const struct flag *flag = &(*g)->flags[i];
            if (!flag->is_not_kept && flags_print(values, flag, &value) && value.data)
                fact(page, flag->name, value.data);
            page->status = page->status == CVY_OK ? value.status : page->status;
            cvy_text_free(&value);
        }
    }
    cvy_text_printf(page, "</table>\n</details>\n");
    return page->status;
}

static cvy_status build(struct cvy_text *page, const struct flag_values *values, struct cvy_trainer *t,
                        const struct run_result *result, const char *metrics) {
    const struct cvy_task_options *o = &t->task.options;
    struct cvy_text title = {0};
    cvy_text_printf(&title, "%s on %s", t->task.model->name, o->data);
    page_begin(page, title.data ? title.data : "run");
    cvy_text_printf(page, "<h1>");
    page_text(page, title.data ? title.data : "run");
    cvy_text_printf(page, "</h1>\n<p class=\"dim\">%lldx%lldx%lld, %lld classes, batches of %lld</p>\n",
                    LL(o->input[0]), LL(o->input[1]), LL(o->input[2]), LL(o->num_classes),
                    LL(o->loader.batch_size));
    cvy_text_free(&title);
    summary(page, t, result);
    CVY_TRY(report_curves(page, metrics, t->n_steps));
    CVY_TRY(report_step(page, &t->step_trace, t->task.plan));
    CVY_TRY(report_mistakes(page, &t->mistakes, &t->task));
    CVY_TRY(facts(page, t, result));
    CVY_TRY(settings(page, values));
    page_end(page);
    return page->status;
}

cvy_status report_write(const struct flag_values *values, struct cvy_trainer *t,
                        const struct run_result *result) {
    const char *dir = t->options.output_dir;
    struct cvy_text page = {0}, metrics = {0}, path = {0};
    cvy_status status;
    if (!dir || cvy_world_rank(t->options.task.plan.world) > 0)
        return CVY_OK;
    cvy_text_printf(&metrics, "%s/metrics.jsonl", dir);
    cvy_text_printf(&path, "%s/report.html", dir);
    CVY_TRY_OUT(metrics.status);
    CVY_TRY_OUT(path.status);
    CVY_TRY_OUT(build(&page, values, t, result, metrics.data));
    CVY_TRY_OUT(cvy_write_file(path.data, page.data, page.n));
out:
    cvy_text_free(&page);
    cvy_text_free(&metrics);
    cvy_text_free(&path);
    return status;
}

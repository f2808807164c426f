/* One step in report.html: where its time went, device by device, and a timeline. */
#include "cli/report.h"

#include "base/mem.h"
#include "engine/event_kind.h"
#include "engine/plan.h"

#include <stdlib.h>
#include <string.h>

enum kind { FORWARD, BACKWARD, UPDATE, TALK, WAIT, OTHER, N_KINDS }; /* fewer than there are */

static const struct {
    const char *name, *letter;
} kinds[N_KINDS] = {{"forward", "F"},          {"backward", "B"}, {"update", "U"},
                    {"all-reduce, sums", "r"}, {"waiting", ""},   {"host, other", ""}};

static enum kind kind_of(const struct cvy_event *e) {
    static const enum kind shown[CVY_N_KINDS] = {
        [CVY_KIND_FORWARD] = FORWARD, [CVY_KIND_BACKWARD] = BACKWARD, [CVY_KIND_UPDATE] = UPDATE,
        [CVY_KIND_REFRESH] = UPDATE,  [CVY_KIND_ADD] = TALK,          [CVY_KIND_PARAMETERS] = TALK,
        [CVY_KIND_REDUCE] = TALK,     [CVY_KIND_SEND] = TALK,         [CVY_KIND_IDLE] = WAIT,
        [CVY_KIND_HOST] = OTHER};
    return shown[cvy_kind_of_event(e)];
}

/* ---- shares --------------------------------------------------------------------------------------------- */

static double ms(int64_t ns) { return (double)ns * 1e-6; }

/* A row: the device's name, a bar, the same as numbers. What no event covers is the host's. */
static void draw_shares(struct cvy_text *page, const char *name, const double part[N_KINDS], double total) {
    double x = 0;
    cvy_text_printf(page, "<tr><td>");
    page_text(page, name);
    cvy_text_printf(page, "</td><td><svg viewBox=\"0 0 300 14\" width=\"300\" height=\"14\">");
    for (int k = 0; k < N_KINDS; k++) {
        const double width = 300 * part[k] / total;
        cvy_text_printf(page, "<rect class=\"f%d\" x=\"%.1f\" width=\"%.1f\" height=\"14\"/>", k, x, width);
        x += width;
    }
    cvy_text_printf(page, "</svg></td>");
    for (int k = 0; k < N_KINDS; k++)
        cvy_text_printf(page, "<td class=\"n\">%.1f %%</td>", 100 * part[k] / total);
    cvy_text_printf(page, "</tr>\n");
}

static void shares_of(const struct cvy_step_trace *s, int device, double part[N_KINDS], double total) {
    double rest = total;
    memset(part, 0, N_KINDS * sizeof *part);
    for (size_t i = 0; i < s->events.n; i++) {
        const struct cvy_step_trace_event *e = &s->events.data[i];
        const enum kind kind = kind_of(&e->event);
        if (e->device != device || kind == OTHER)
            continue;
        part[kind] += ms(e->event.end_ns - e->event.start_ns);
        rest -= ms(e->event.end_ns - e->event.start_ns);
    }
    part[OTHER] = rest > 0 ? rest : 0;
}

static void shares(struct cvy_text *page, const struct cvy_step_trace *s, const cvy_plan *plan) {
    const double step = ms(s->end_ns - s->loaded_ns);
    cvy_text_printf(page, "<table><tr><th>device</th><th></th>");
    for (int k = 0; k < N_KINDS; k++)
        cvy_text_printf(page,
                        "<th><svg viewBox=\"0 0 10 10\" width=\"10\" height=\"10\"><rect class=\"f%d\" "
                        "width=\"10\" height=\"10\"/></svg> %s</th>",
                        k, kinds[k].name);
    cvy_text_printf(page, "</tr>\n");
    for (int d = 0; d < plan->team.n; d++) {
        double part[N_KINDS];
        shares_of(s, d, part, step);
        draw_shares(page, plan->team.workers[d].device->name, part, step);
    }
    cvy_text_printf(page, "</table>\n");
}

/* ---- the timeline --------------------------------------------------------------------------------------- */

enum { WIDTH = 1040, LEFT = 70, ROW = 30, GAP = 8, TOP = 12, FOOT = 26 };

struct box { /* neighbours of one kind and shard */
    enum kind kind;
    int32_t shard;
    int64_t start_ns, end_ns;
};

static void draw_box(struct cvy_text *page, const struct cvy_step_trace *s, int row, const struct box *b) {
    const double scale = (WIDTH - LEFT - 10) / (double)(s->end_ns - s->loaded_ns);
    const double x = LEFT + (double)(b->start_ns - s->loaded_ns) * scale,
                 width = (double)(b->end_ns - b->start_ns) * scale;
    const int y = TOP + row * (ROW + GAP);
    if (width < 0.2) /* not to be seen, and there can be thousands */
        return;
    cvy_text_printf(page, "<rect class=\"f%d\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>%s",
                    (int)b->kind, x, y, width, ROW, kinds[b->kind].name);
    if (b->shard >= 0)
        cvy_text_printf(page, ", shard %d", b->shard);
    cvy_text_printf(page, ": %.2f ms</title></rect>", ms(b->end_ns - b->start_ns));
    if (width < 26 || !*kinds[b->kind].letter)
        return;
    cvy_text_printf(page, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" style=\"fill:var(--bg)\">%s",
                    x + width / 2, y + ROW / 2 + 4, kinds[b->kind].letter);
    if (b->shard >= 0)
        cvy_text_printf(page, "%d", b->shard);
    cvy_text_printf(page, "</text>");
}

static void draw_device(struct cvy_text *page, const struct cvy_step_trace *s, int device) {
    struct box box = {.kind = OTHER};
    for (size_t i = 0; i < s->events.n; i++) {
        const struct cvy_event *e = &s->events.data[i].event;
        const enum kind kind = kind_of(e);
        const int32_t shard = kind == FORWARD || kind == BACKWARD ? e->shard : -1;
        if (s->events.data[i].device != device || kind == OTHER)
            continue;
        if (box.end_ns > 0 && box.kind == kind && box.shard == shard) {
            box.end_ns = e->end_ns;
            continue;
        }
        if (box.end_ns > 0)
            draw_box(page, s, device, &box);
        box = (struct box){kind, shard, e->start_ns, e->end_ns};
    }
    if (box.end_ns > 0)
        draw_box(page, s, device, &box);
}

static void timeline(struct cvy_text *page, const struct cvy_step_trace *s, const cvy_plan *plan) {
    const int height = TOP + plan->team.n * (ROW + GAP) + FOOT, bottom = height - FOOT;
    const double step = ms(s->end_ns - s->loaded_ns);
    cvy_text_printf(page,
                    "<svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\"><title>timeline of "
                    "the step</title>\n",
                    WIDTH, height, WIDTH, height);
    for (int d = 0; d < plan->team.n; d++) {
        cvy_text_printf(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 8,
                        TOP + d * (ROW + GAP) + ROW / 2 + 4);
        page_text(page, plan->team.workers[d].device->name);
        cvy_text_printf(page, "</text>");
        draw_device(page, s, d);
        cvy_text_printf(page, "\n");
    }
    for (int k = 0; k <= 4; k++)
        cvy_text_printf(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">%.1f ms</text>",
                        LEFT + (WIDTH - LEFT - 10) * k / 4, bottom + 18, k == 4 ? "end" : "middle",
                        step * k / 4);
    cvy_text_printf(page, "</svg>\n");
}

cvy_status report_step(struct cvy_text *page, const struct cvy_step_trace *s, const cvy_plan *plan) {
    if (s->events.n == 0 || s->end_ns <= s->loaded_ns)
        return CVY_OK;
    cvy_text_printf(
        page,
        "<h2>One step</h2>\n<p class=\"dim\">Step %lld of epoch %lld: %.1f ms, after %.1f ms of waiting for "
        "its images.%s%s</p>\n",
        (long long)s->step + 1, (long long)s->epoch + 1, ms(s->end_ns - s->loaded_ns),
        ms(s->loaded_ns - s->start_ns), plan->n_devices > plan->team.n ? " The devices of rank 0." : "",
        plan->backend->streams ? " What is enqueued on a device is counted when the host does it." : "");
    shares(page, s, plan);
    timeline(page, s, plan);
    return page->status;
}

/* Line charts of report_page.h, as inline SVG. */
#include "cli/report_page.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 520, HEIGHT = 250, LEFT = 60, RIGHT = 14, TOP = 34, BOTTOM = 46, N_COLOURS = 4, LETTER = 7 };
static const double HAIR = 1e-6; /* of a tick: what rounding may hide */

cvy_status page_series_add(struct page_series *s, double x, double y) {
    while (s->points.n > 0 && s->points.data[s->points.n - 1].x >= x)
        s->points.n--;
    return cvy_vec_push(&s->points, (struct page_point){x, y});
}

void page_series_thin(struct page_series *s, size_t most) {
    const size_t group = (s->points.n + most - 1) / most;
    size_t n = 0;
    for (size_t i = 0; group > 1 && i < s->points.n; i += group) {
        const size_t here = s->points.n - i < group ? s->points.n - i : group;
        struct page_point mean = {0, 0};
        for (size_t k = 0; k < here; k++) {
            mean.x += s->points.data[i + k].x / (double)here;
            mean.y += s->points.data[i + k].y / (double)here;
        }
        s->points.data[n++] = mean;
    }
    s->points.n = group > 1 ? n : s->points.n;
}

struct range {
    double low, high, tick;
};

/* 1, 2 or 5 times a power of ten, so that there are about n of them. */
static double round_step(double span, double n) {
    const double power = pow(10, floor(log10(span / n))), rest = span / n / power;
    return power * (rest > 5 ? 10 : rest > 2 ? 5 : rest > 1 ? 2 : 1);
}

/* Of all finite points; false: there is none. */
static bool find_ranges(const struct page_chart *c, struct range *x, struct range *y) {
    *x = *y = (struct range){INFINITY, -INFINITY, 0};
    for (size_t s = 0; s < c->n; s++) {
        for (size_t i = 0; i < c->series[s].points.n; i++) {
            const struct page_point p = c->series[s].points.data[i];
            if (!isfinite(p.y))
                continue;
            *x = (struct range){fmin(x->low, p.x), fmax(x->high, p.x), 0};
            *y = (struct range){fmin(y->low, p.y), fmax(y->high, p.y), 0};
        }
    }
    if (!(x->low <= x->high))
        return false;
    for (struct range *r = x;; r = y) {
        if (r->low == r->high) { /* a line in the middle */
            const double half = r->low == 0 ? 0.5 : fabs(r->low) / 2;
            r->low -= half;
            r->high += half;
        }
        r->tick = round_step(r->high - r->low, r == x ? 7 : 5);
        if (r == y)
            break;
    }
    y->low = floor(y->low / y->tick) * y->tick;
    y->high = ceil(y->high / y->tick) * y->tick;
    return true;
}

static double place(const struct range *r, double v, double from, double to) {
    return from + (v - r->low) / (r->high - r->low) * (to - from);
}

static double at_x(const struct range *r, double v) { return place(r, v, LEFT, WIDTH - RIGHT); }
static double at_y(const struct range *r, double v) { return place(r, v, HEIGHT - BOTTOM, TOP); }

/* Counted from 0. */
static long long first_tick(const struct range *r) { return llround(ceil(r->low / r->tick - HAIR)); }
static long long last_tick(const struct range *r) { return llround(floor(r->high / r->tick + HAIR)); }

static void draw_axes(struct cvy_text *page, const struct page_chart *c, const struct range *x,
                      const struct range *y) {
    for (long long k = first_tick(y); k <= last_tick(y); k++) {
        const double v = (double)k * y->tick, at = at_y(y, v);
        cvy_text_printf(page,
                        "<line class=\"ax\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                        "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.6g</text>",
                        LEFT, WIDTH - RIGHT, at, at, LEFT - 6, at + 4, fabs(v) < y->tick * HAIR ? 0 : v);
    }
    for (long long k = first_tick(x); k <= last_tick(x); k++)
        cvy_text_printf(page, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.4g</text>",
                        at_x(x, (double)k * x->tick), HEIGHT - BOTTOM + 18, (double)k * x->tick);
    cvy_text_printf(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", WIDTH - RIGHT, HEIGHT - 10);
    page_text(page, c->x_name);
    cvy_text_printf(page, "</text>\n");
}

/* A break where a value is not finite. */
static void draw_line(struct cvy_text *page, const struct page_series *s, size_t colour,
                      const struct range *x, const struct range *y) {
    bool is_down = false;
    cvy_text_printf(page, "<path class=\"c l%zu\" d=\"", colour);
    for (size_t i = 0; i < s->points.n; i++) {
        const struct page_point p = s->points.data[i];
        if (isfinite(p.y))
            cvy_text_printf(page, "%c%.1f %.1f", is_down ? 'L' : 'M', at_x(x, p.x), at_y(y, p.y));
        is_down = isfinite(p.y);
    }
    cvy_text_printf(page, "\"/>\n");
    for (size_t i = 0; s->is_marked && i < s->points.n; i++) {
        const struct page_point p = s->points.data[i];
        if (isfinite(p.y))
            cvy_text_printf(page,
                            "<circle class=\"f%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\"><title>%s at %.4g: %.5g"
                            "</title></circle>",
                            colour, at_x(x, p.x), at_y(y, p.y), s->name, p.x, p.y);
    }
}

void page_chart(struct cvy_text *page, const struct page_chart *c) {
    struct range x, y;
    double legend = LEFT;
    if (!find_ranges(c, &x, &y))
        return;
    cvy_text_printf(page, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\"><title>", WIDTH,
                    HEIGHT, WIDTH, HEIGHT);
    page_text(page, c->title);
    cvy_text_printf(page, "</title>\n<text class=\"h\" x=\"%d\" y=\"22\">", LEFT);
    page_text(page, c->title);
    cvy_text_printf(page, "%s%s</text>\n", *c->unit ? ", " : "", c->unit);
    draw_axes(page, c, &x, &y);
    for (size_t s = 0; s < c->n; s++) {
        if (c->series[s].points.n == 0)
            continue;
        draw_line(page, &c->series[s], s % N_COLOURS, &x, &y);
        cvy_text_printf(page,
                        "<rect class=\"f%zu\" x=\"%.0f\" y=\"%d\" width=\"10\" height=\"10\" rx=\"2\"/>"
                        "<text x=\"%.0f\" y=\"%d\">%s</text>",
                        s % N_COLOURS, legend, HEIGHT - 19, legend + 14, HEIGHT - 10, c->series[s].name);
        legend += 28 + LETTER * (double)strlen(c->series[s].name);
    }
    cvy_text_printf(page, "</svg>\n");
}

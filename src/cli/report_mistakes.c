/* What the last evaluation got wrong, in report.html: the confusion matrix, the pairs that are confused most, the
   images with the largest losses. */
#include "cli/report.h"

#include "base/mem.h"
#include "base/ranking.h"
#include "data/encode_jpeg.h"
#include "data/encode_png.h"
#include "data/picture.h"
#include "data/transform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_CELLS = 30, /* classes of a matrix that can be read */
    CELL = 26,
    LETTER = 7, /* pixels, about */
    N_PAIRS = 12,
    SMALL = 64, /* pixels; smaller pictures are kept exact, and enlarged without blur */
    QUALITY = 82,
};

static void put_class(struct cvy_text *page, const struct cvy_task *task, int64_t k) {
    const char *name = cvy_dataset_class_name(task->val, k);
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)k);
    page_text(page, name ? name : number);
}

/* ---- counts --------------------------------------------------------------------------------------------- */

static int64_t images_of(const struct cvy_mistakes *m, int64_t label) {
    int64_t n = 0;
    for (int64_t k = 0; k < m->n_classes; k++)
        n += m->counts[label * m->n_classes + k];
    return n;
}

/* Room for the longest name beside the matrix, and above it. */
static int64_t names_width(const struct cvy_task *task, int64_t n) {
    size_t most = 2;
    for (int64_t k = 0; k < n; k++) {
        const char *name = cvy_dataset_class_name(task->val, k);
        const size_t length = name ? strlen(name) : 0;
        most = length > most ? length : most;
    }
    return 20 + LETTER * (int64_t)(most < 24 ? most : 24);
}

static void draw_matrix(struct cvy_text *page, const struct cvy_mistakes *m, const struct cvy_task *task) {
    const int64_t n = m->n_classes, left = names_width(task, n), top = left;
    cvy_text_printf(
        page,
        "<svg viewBox=\"0 0 %lld %lld\" width=\"%lld\" height=\"%lld\" role=\"img\"><title>confusion "
        "matrix</title>\n",
        (long long)(left + n * CELL + 10), (long long)(top + n * CELL + 10),
        (long long)(left + n * CELL + 10), (long long)(top + n * CELL + 10));
    for (int64_t i = 0; i < n; i++) {
        const int64_t all = images_of(m, i);
        cvy_text_printf(page, "<text x=\"%lld\" y=\"%lld\" text-anchor=\"end\">", (long long)left - 8,
                        (long long)(top + i * CELL + CELL / 2 + 4));
        put_class(page, task, i);
        cvy_text_printf(page, "</text><text transform=\"translate(%lld %lld) rotate(-60)\">",
                        (long long)(left + i * CELL + CELL / 2 + 4), (long long)top - 8);
        put_class(page, task, i);
        cvy_text_printf(page, "</text>\n");
        for (int64_t k = 0; k < n; k++) {
            const uint32_t count = m->counts[i * n + k];
            const double share = all > 0 ? (double)count / (double)all : 0;
            cvy_text_printf(
                page,
                "<rect x=\"%lld\" y=\"%lld\" width=\"%d\" height=\"%d\" style=\"fill:rgba(var(--%s),"
                "%.2f)\"><title>",
                (long long)(left + k * CELL), (long long)(top + i * CELL), CELL - 1, CELL - 1,
                i == k ? "heat" : "bad", count ? 0.08 + 0.92 * share : 0.03);
            put_class(page, task, i);
            cvy_text_printf(page, " taken for ");
            put_class(page, task, k);
            cvy_text_printf(page, ": %u of %lld</title></rect>", count, (long long)all);
        }
        cvy_text_printf(page, "\n");
    }
    cvy_text_printf(page, "</svg>\n<p class=\"dim\">A row is a class of the data, a column what the network "
                          "said.</p>\n");
}

struct pair {
    int64_t label, guess;
    uint32_t count;
};

static int more_images_first(const void *a, const void *b) {
    const struct pair *x = a, *y = b;
    return (x->count < y->count) - (x->count > y->count);
}

/* The pairs that are confused most, most first: *n of them. */
static void find_pairs(const struct cvy_mistakes *m, struct pair pairs[N_PAIRS], int *n) {
    *n = 0;
    for (int64_t cell = 0; cell < m->n_classes * m->n_classes; cell++) {
        const struct pair pair = {cell / m->n_classes, cell % m->n_classes, m->counts[cell]};
        if (pair.label != pair.guess && pair.count > 0)
            cvy_rank(pairs, sizeof pair, n, N_PAIRS, &pair, more_images_first);
    }
}

static void list_pairs(struct cvy_text *page, const struct cvy_mistakes *m, const struct cvy_task *task) {
    struct pair pairs[N_PAIRS];
    int n;
    find_pairs(m, pairs, &n);
    if (n == 0)
        return;
    cvy_text_printf(page,
                    "<table><tr><th>class</th><th>taken for</th><th>images</th><th>of the class</th></tr>\n");
    for (int i = 0; i < n; i++) {
        cvy_text_printf(page, "<tr><td>");
        put_class(page, task, pairs[i].label);
        cvy_text_printf(page, "</td><td>");
        put_class(page, task, pairs[i].guess);
        cvy_text_printf(page, "</td><td class=\"n\">%u</td><td class=\"n\">%.1f %%</td></tr>\n",
                        pairs[i].count, 100.0 * pairs[i].count / (double)images_of(m, pairs[i].label));
    }
    cvy_text_printf(page, "</table>\n");
}

/* ---- pictures ------------------------------------------------------------------------------------------- */

/* As the network saw it: *picture gets u8 NHWC, 3 channels. */
static cvy_status look(const struct cvy_task *task, int64_t index, struct cvy_image *picture) {
    const struct cvy_transform *t = &task->transform;
    struct cvy_rng rng = {0};
    const struct cvy_transform_draw draw = {t, &rng};
    struct cvy_transform_work work = {0};
    struct cvy_image image = {0};
    char *pixels = NULL;
    cvy_status status;
    CVY_TRY_OUT(CVY_ALLOC(pixels, cvy_transform_bytes(t)));
    CVY_TRY_OUT(cvy_dataset_read(task->val, index, NULL, &image));
    CVY_TRY_OUT(cvy_transform_apply(&draw, &work, &image, pixels));
    CVY_TRY_OUT(cvy_image_reshape(picture, 3, t->height, t->width, CVY_U8, CVY_NHWC));
    const cvy_batch batch = {.n = 1,
                             .channels = t->channels,
                             .height = t->height,
                             .width = t->width,
                             .dtype = t->dtype,
                             .order = t->order,
                             .images = pixels};
    cvy_picture_rgb(&batch, 0, picture->pixels);
out:
    cvy_image_free(&image);
    cvy_transform_work_free(&work);
    free(pixels);
    return status;
}

static bool is_small(const struct cvy_transform *t) { return t->height <= SMALL && t->width <= SMALL; }

static cvy_status put_picture(struct cvy_text *page, const struct cvy_task *task, int64_t index) {
    struct cvy_image picture = {0};
    void *bytes = NULL;
    size_t n_bytes = 0;
    const bool is_exact = is_small(&task->transform);
    cvy_status status = look(task, index, &picture);
    if (status == CVY_OK && is_exact)
        status = cvy_encode_png(&picture, &bytes, &n_bytes);
    else if (status == CVY_OK)
        status = cvy_encode_jpeg(&picture, QUALITY, (unsigned char **)&bytes, &n_bytes);
    if (status == CVY_OK)
        page_image(page, is_exact ? "image/png" : "image/jpeg", bytes, n_bytes, "");
    else /* a file that has gone, say: the report is still worth having */
        cvy_text_printf(page, "<p class=\"dim\">cannot be read any more</p>");
    free(bytes);
    cvy_image_free(&picture);
    return status == CVY_ERR_MEMORY ? status : CVY_OK;
}

static cvy_status put_worst(struct cvy_text *page, const struct cvy_mistakes *m,
                            const struct cvy_task *task) {
    cvy_text_printf(
        page,
        "<h2>The worst mistakes</h2>\n<p class=\"dim\">Validation images with the largest losses, as "
        "the network saw them.</p>\n<div class=\"pics%s\">\n",
        is_small(&task->transform) ? " small" : "");
    for (int i = 0; i < m->n_worst; i++) {
        const struct cvy_mistake *w = &m->worst[i];
        const char *path = task->val->format->path ? task->val->format->path(task->val, w->index) : NULL;
        cvy_text_printf(page, "<figure>");
        CVY_TRY(put_picture(page, task, w->index));
        cvy_text_printf(page, "<figcaption><b>");
        put_class(page, task, w->label);
        cvy_text_printf(page, "</b> taken for <b>");
        put_class(page, task, w->guess);
        cvy_text_printf(page, "</b> (%.0f %%), loss %.2f<br><span class=\"dim\">", 100 * w->p_guess, w->loss);
        if (path)
            page_text(page, path);
        else
            cvy_text_printf(page, "image %lld", (long long)w->index);
        cvy_text_printf(page, "</span></figcaption></figure>\n");
    }
    cvy_text_printf(page, "</div>\n");
    return page->status;
}

cvy_status report_mistakes(struct cvy_text *page, const struct cvy_mistakes *m, const struct cvy_task *task) {
    if (m->counts) {
        cvy_text_printf(page, "<h2>What is taken for what</h2>\n<div class=\"row\">\n<div>");
        if (m->n_classes <= MOST_CELLS)
            draw_matrix(page, m, task);
        cvy_text_printf(page, "</div>\n<div>");
        list_pairs(page, m, task);
        cvy_text_printf(page, "</div>\n</div>\n");
    }
    return m->n_worst > 0 ? put_worst(page, m, task) : page->status;
}

/* Walks the taps of a convolution. */
#include "ops/conv_walk.h"

struct cvy_window cvy_conv_window(const struct cvy_conv2d_attrs *a, int axis, int64_t in) {
    return (struct cvy_window){.in = in,
                               .kernel = a->kernel[axis],
                               .stride = a->stride[axis],
                               .padding = a->padding[axis],
                               .dilation = a->dilation[axis]};
}

/* n products along a row of y, for one tap: x moves by `step`. */
typedef void row_function(double *y, double *x, double *w, int64_t n, int64_t step);

static void row_forward(double *y, double *x, double *w, int64_t n, int64_t step) {
    for (int64_t q = 0; q < n; q++)
        y[q] += x[q * step] * *w;
}

static void row_data(double *y, double *x, double *w, int64_t n, int64_t step) {
    for (int64_t q = 0; q < n; q++)
        x[q * step] += y[q] * *w;
}

static void row_weights(double *y, double *x, double *w, int64_t n, int64_t step) {
    double sum = 0;
    for (int64_t q = 0; q < n; q++)
        sum += y[q] * x[q * step];
    *w += sum;
}

/* One plane of y with one plane of x, and their kernel w[k,l]. */
static void walk_plane(const struct cvy_conv *c, double *y, double *x, double *w, row_function *row) {
    const struct cvy_conv2d_attrs *a = c->a;
    int64_t width = c->x_shape->dim[3], n_p = c->y_shape->dim[2], n_q = c->y_shape->dim[3];
    struct cvy_window rows = cvy_conv_window(a, 0, c->x_shape->dim[2]),
                      columns = cvy_conv_window(a, 1, width);
    for (int64_t k = 0; k < a->kernel[0]; k++) {
        int64_t p, p_end;
        cvy_window_range(&rows, k, n_p, &p, &p_end);
        for (; p < p_end; p++) {
            double *x_row = x + (p * a->stride[0] + k * a->dilation[0] - a->padding[0]) * width;
            for (int64_t l = 0; l < a->kernel[1]; l++) {
                int64_t q, q_end;
                cvy_window_range(&columns, l, n_q, &q, &q_end);
                if (q < q_end)
                    row(y + p * n_q + q, x_row + (q * a->stride[1] + l * a->dilation[1] - a->padding[1]),
                        w + k * a->kernel[1] + l, q_end - q, a->stride[1]);
            }
        }
    }
}

void cvy_conv_walk(const struct cvy_conv *c, enum cvy_conv_sum sum) {
    static row_function *const rows[] = {row_forward, row_data, row_weights};
    int64_t n_o = c->y_shape->dim[1], n_i = c->x_shape->dim[1] / c->a->groups; /* n_i: of one group */
    int64_t x_plane = c->x_shape->dim[2] * c->x_shape->dim[3],
            y_plane = c->y_shape->dim[2] * c->y_shape->dim[3];
    int64_t taps = c->a->kernel[0] * c->a->kernel[1];
    for (int64_t n = 0; n < c->x_shape->dim[0]; n++) {
        for (int64_t o = 0; o < n_o; o++) {
            int64_t first = o / (n_o / c->a->groups) * n_i; /* channel of x where o's group begins */
            double *x = c->x + (n * c->x_shape->dim[1] + first) * x_plane;
            for (int64_t i = 0; i < n_i; i++)
                walk_plane(c, c->y + (n * n_o + o) * y_plane, x + i * x_plane, c->w + (o * n_i + i) * taps,
                           rows[sum]);
        }
    }
}

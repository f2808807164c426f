/* batch_norm_merge: rows of all shards to statistics, channel by channel, in the tree over shards. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/moments.h"
#include "backends/cpu/rows.h"
#include "ops/batch_norm.h"

enum { ROWS, ROW };

struct source {
    const float *rows; /* [n][width] */
    int64_t n, width, channels;
};

/* The node of `size` rows, a power of two, from `first` on, of n_channels channels from c on. */
static void merge(const struct source *s, int64_t c, int n_channels, int64_t first, int64_t size,
                  struct cpu_moments *out) {
    const float *row = s->rows + first * s->width;
    if (size == 1) {
        out->n = (double)row[2 * s->channels];
        for (int l = 0; l < n_channels;
             l++) { /* + 0: a sum over devices made of -0 a 0, so one device does too */
            out->mean[l] = (double)(row[c + l] + 0.0f);
            out->m2[l] = (double)row[s->channels + c + l];
        }
        return;
    }
    merge(s, c, n_channels, first, size / 2, out);
    if (first + size / 2 < s->n) {
        struct cpu_moments right;
        merge(s, c, n_channels, first + size / 2, size / 2, &right);
        cpu_moments_merge(out, &right, n_channels);
    }
}

static void merge_channels(const struct cpu_rows *me, int64_t first, int64_t end) {
    int64_t channels = ((const struct cvy_batch_norm_merge_attrs *)me->attrs)->channels;
    struct source s = {
        .rows = me->in[ROWS], .n = me->images, .width = cvy_batch_norm_row(channels), .channels = channels};
    float *mean = me->out[CVY_BATCH_NORM_MERGE_MEAN], *var = me->out[CVY_BATCH_NORM_MERGE_VAR];
    float *stats = me->out[CVY_BATCH_NORM_MERGE_STATS];
    double images = (double)((const float *)me->in[ROW])[2 * s.channels + 1];
    int64_t size = 1;
    (void)first; /* the whole tensor is one row: it is small */
    (void)end;
    while (size < s.n)
        size *= 2;
    for (int64_t c = 0; c < channels; c += CPU_LANES) {
        struct cpu_moments all;
        int n_channels = (int)(channels - c < CPU_LANES ? channels - c : CPU_LANES);
        merge(&s, c, n_channels, 0, size, &all);
        bool has_stats = all.n > 1;
        for (int l = 0; l < n_channels; l++) {
            mean[c + l] = (float)all.mean[l];
            var[c + l] = all.n > 0 ? (float)(all.m2[l] / all.n) : 0;
            if (stats) {
                stats[c + l] = has_stats ? (float)(images * all.mean[l]) : 0;
                stats[s.channels + c + l] = has_stats ? (float)(images * all.m2[l] / (all.n - 1)) : 0;
            }
        }
        if (stats && c == 0)
            stats[2 * s.channels] = has_stats ? (float)images : 0;
    }
}

CPU_ROWS_KERNEL(batch_norm_merge, .row = CPU_ROW_ALL, .span = merge_channels)

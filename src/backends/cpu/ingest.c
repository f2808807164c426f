/* The loader's images to the input tensor, in one pass: x' = (x / 255 (u8 only) - mean[c]) / std[c]. */
#include "backends/cpu/cpu.h"

#include <string.h>

enum { MAX_CHANNELS = sizeof((cvy_batch *)0)->mean / sizeof(float) };

struct ingest {
    const struct cvy_ingest *what;
    struct cpu_view to_view;
    float *to;
    int64_t image, channel, pixel;   /* steps in the loader's images, in elements */
    float levels[MAX_CHANNELS][256]; /* of bytes: what each becomes */
};

/* One channel of one image; the formula is the reference's, in single precision. There are but 256 levels: divisions
   are made for them alone. */
static inline void look_up(const uint8_t *from, int64_t from_step, float *to, int64_t to_step, int64_t n,
                           const float levels[256]) {
    for (int64_t i = 0; i < n; i++)
        to[i * to_step] = levels[from[i * from_step]];
}

/* Where the compiler knows the steps, it takes a quarter less time. */
static void convert_u8(const uint8_t *from, int64_t from_step, float *to, int64_t to_step, int64_t n,
                       const float levels[256]) {
    if (from_step == 3 && to_step == 1)
        look_up(from, 3, to, 1, n, levels);
    else
        look_up(from, from_step, to, to_step, n, levels);
}

CPU_VECTOR static void convert_f32(const float *from, int64_t from_step, float *to, int64_t to_step,
                                   int64_t n, float mean, float std) {
    for (int64_t i = 0; i < n; i++)
        to[i * to_step] = (from[i * from_step] - mean) / std;
}

static void ingest_image(const struct ingest *me, int64_t n) {
    const cvy_batch *batch = me->what->batch;
    const struct cpu_view *v = &me->to_view;
    for (int64_t c = 0; c < v->padded_channels; c++) {
        float *to = me->to + n * v->image + c / v->lanes * v->block + c % v->lanes;
        int64_t from = (me->what->first + n) * me->image + c * me->channel;
        if (c >= v->channels) {
            for (int64_t i = 0; i < v->pixels; i++)
                to[i * v->pixel] = 0;
        } else if (batch->dtype == CVY_U8) {
            convert_u8((const uint8_t *)batch->images + from, me->pixel, to, v->pixel, v->pixels,
                       me->levels[c]);
        } else {
            convert_f32((const float *)batch->images + from, me->pixel, to, v->pixel, v->pixels,
                        batch->mean[c], batch->std[c]);
        }
    }
}

static void fill_levels(struct ingest *me, const cvy_batch *batch) {
    for (int64_t c = 0; c < batch->channels; c++) {
        for (int level = 0; level < 256; level++)
            me->levels[c][level] = ((float)level / 255.0f - batch->mean[c]) / batch->std[c];
    }
}

static void ingest_part(void *context, int part, int n_parts) {
    const struct ingest *me = context;
    int64_t first, end;
    cpu_part(me->to_view.n, 1, part, n_parts, &first, &end);
    for (int64_t n = first; n < end; n++)
        ingest_image(me, n);
}

cvy_status cpu_ingest(struct cvy_device *device, const struct cvy_ingest *what,
                      const struct cvy_operand_spec *to_spec, void *to) {
    const cvy_batch *batch = what->batch;
    struct ingest me = {.what = what, .to = to};
    CVY_TRY(cvy_ingest_check(device, what, to_spec));
    if (!cpu_layout_view(to_spec->layout, &to_spec->desc, &me.to_view))
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "%s: images cannot be laid out as the model's first layer wants",
                        device->name);
    bool is_nhwc = batch->order == CVY_NHWC;
    me.image = batch->channels * me.to_view.pixels;
    me.channel = is_nhwc ? 1 : me.to_view.pixels;
    me.pixel = is_nhwc ? batch->channels : 1;
    if (batch->dtype == CVY_U8)
        fill_levels(&me, batch);
    cpu_team_run(device->spec.n_threads, ingest_part, &me);
    return CVY_OK;
}

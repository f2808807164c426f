/* The two layouts of a GPU's tensors. */
#include "layout.h"

#include <string.h>

struct cvy_layout {
    const char *name;
};

static const struct cvy_layout nhwc = {"nhwc"};
const struct cvy_layout *const cuda_nhwc = &nhwc;

size_t cuda_layout_bytes(const struct cvy_layout *layout, const struct cvy_desc *desc) {
    (void)layout;
    return cvy_desc_bytes(desc);
}

void cuda_layout_print(const struct cvy_layout *layout, struct cvy_text *out) {
    cvy_text_printf(out, "%s", layout ? layout->name : "plain");
}

bool cuda_layout_find(struct cvy_device *device, const char *name, const struct cvy_layout **out) {
    (void)device;
    *out = strcmp(name, nhwc.name) == 0 ? cuda_nhwc : NULL;
    return *out || strcmp(name, "plain") == 0;
}

bool cuda_layout_view(const struct cvy_layout *layout, const struct cvy_desc *desc, struct cuda_view *out) {
    const struct cvy_shape *shape = &desc->shape;
    if (shape->n < 2)
        return false;
    int64_t n = shape->dim[0], channels = shape->dim[1], pixels = 1;
    for (int k = 2; k < shape->n; k++)
        pixels *= shape->dim[k];
    bool is_nhwc = layout == cuda_nhwc;
    *out = (struct cuda_view){.n = n,
                              .channels = channels,
                              .pixels = pixels,
                              .image = channels * pixels,
                              .channel = is_nhwc ? 1 : pixels,
                              .pixel = is_nhwc ? channels : 1};
    return true;
}

static void choose(struct cvy_operand_spec *specs, int n, const struct cvy_layout *layout) {
    for (int i = 0; i < n; i++)
        specs[i].layout = !specs[i].is_absent && specs[i].desc.shape.n == 4 ? layout : NULL;
}

void cuda_choose_like(struct cvy_call *call, int like) {
    const struct cvy_layout *layout = call->in[like].layout;
    choose(call->in, call->n_in, layout);
    choose(call->out, call->n_out, layout);
}

void cuda_choose_nhwc(struct cvy_call *call) {
    choose(call->in, call->n_in, cuda_nhwc);
    choose(call->out, call->n_out, cuda_nhwc);
}

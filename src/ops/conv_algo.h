/* The text of --conv-algo: "auto", "direct" or "winograd", then exceptions for convolutions of one pass and shape:
     auto+forward:128x64x64x32x32=direct+weights:128x512x512x4x4=winograd
   The numbers are images of the largest shard, channels of the input, channels, height and width of the output. */
#ifndef CVY_OPS_CONV_ALGO_H
#define CVY_OPS_CONV_ALGO_H

#include "base/text.h"
#include "ops/conv2d.h"

enum cvy_conv_pass { CVY_CONV_FORWARD, CVY_CONV_BACKWARD_DATA, CVY_CONV_BACKWARD_WEIGHTS };
enum cvy_conv_algo { CVY_CONV_AUTO, CVY_CONV_DIRECT, CVY_CONV_WINOGRAD };

struct cvy_conv_key {
    enum cvy_conv_pass pass;
    int64_t batch, in_channels, out_channels, out_height, out_width;
};

/* Is there a Winograd algorithm at all: 3x3 kernels of stride 1? */
bool cvy_conv_can_winograd(const struct cvy_conv2d_attrs *attrs);
/* CVY_ERR_USAGE says what is wrong with a text, NULL being right. */
cvy_status cvy_conv_algo_check(const char *text);
/* What a right text says of a convolution; of NULL: CVY_CONV_AUTO. */
enum cvy_conv_algo cvy_conv_algo_find(const char *text, const struct cvy_conv_key *key);
/* "forward:128x64x64x32x32" */
void cvy_conv_key_print(const struct cvy_conv_key *key, struct cvy_text *out);

#endif

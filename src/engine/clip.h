/* --clip-grad-norm: the norm of all gradients together, after their reduction, and the factor that brings it down to a
   limit, as torch.nn.utils.clip_grad_norm_ has it: min(1, limit / (norm + 1e-6)). A device knows the gradients of its
   stage; the norms of each are told to all stages and put together in the parameters' order, so that every device comes
   to the same bits, wherever the stages are cut. */
#ifndef CVY_ENGINE_CLIP_H
#define CVY_ENGINE_CLIP_H

#include "rt/program.h"

struct cvy_worker;

struct cvy_gradient { /* of a parameter of this device's stage */
    struct cvy_place place;
    int32_t index; /* of the parameter among all that have a gradient, in their order */
    struct cvy_kernel *norm, *divide;
};

struct cvy_clip { /* zeroed: nothing is clipped */
    CVY_VEC(struct cvy_gradient) gradients;
    int32_t n; /* parameters with a gradient, of all stages */
    double *norms, *theirs;
    char *host;  /* norms as they come from the device */
    double norm; /* of the newest update, before it was clipped; NAN when there was none to speak of */
};

/* Makes the kernels, and room for what they leave. After compilation. [owner of the device] */
cvy_status cvy_clip_prepare(struct cvy_worker *worker);
void cvy_clip_free(struct cvy_clip *clip);

#endif

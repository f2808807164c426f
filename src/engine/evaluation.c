/* See evaluation.h. */
#include "engine/evaluation.h"

#include "base/mem.h"

#include <stdlib.h>

cvy_status cvy_evaluate_all(cvy_session *session, cvy_loader *loader, int64_t batch_size,
                            struct cvy_mistakes *mistakes, struct cvy_tally *out) {
    struct cvy_tally tally = {0};
    float *losses = NULL;
    int32_t *ranks = NULL;
    cvy_batch batch;
    cvy_status status;
    CVY_TRY_OUT(CVY_ALLOC(losses, (size_t)batch_size));
    CVY_TRY_OUT(CVY_ALLOC(ranks, (size_t)batch_size));
    CVY_TRY_OUT(cvy_loader_start(loader, 0));
    if (mistakes)
        cvy_mistakes_clear(mistakes);
    while ((status = cvy_loader_next(loader, &batch)) == CVY_OK) {
        CVY_TRY_OUT(cvy_evaluate(session, &batch, losses, ranks, mistakes ? mistakes->logits : NULL));
        if (mistakes)
            cvy_mistakes_add(mistakes, &batch, losses);
        for (int64_t i = 0; i < batch.n; i++) {
            tally.loss_sum += losses[i];
            tally.top1 += ranks[i] < 1;
            tally.top5 += ranks[i] < 5;
        }
        tally.n += batch.n;
    }
    if (status == CVY_END) {
        *out = tally;
        status = CVY_OK;
    }
out:
    free(losses);
    free(ranks);
    return status;
}

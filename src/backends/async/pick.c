/* See pick.h. */
#include "backends/async/pick.h"

enum { LONGEST_LEAD = 16 }; /* picks that a favourite stream is given at most */

int async_pick(struct async_picker *picker, const bool *is_ready, int n) {
    int n_ready = 0;
    for (int s = 0; s < n; s++)
        n_ready += is_ready[s];
    if (n_ready == 0)
        return -1;
    if (picker->n_favourite == 0) {
        picker->favourite = (int)cvy_rng_below(&picker->rng, (uint32_t)n + 1); /* one more: nobody */
        picker->n_favourite = 1 + (int)cvy_rng_below(&picker->rng, LONGEST_LEAD);
    }
    picker->n_favourite--;
    if (picker->favourite < n && is_ready[picker->favourite])
        return picker->favourite;
    int chosen = (int)cvy_rng_below(&picker->rng, (uint32_t)n_ready), s = 0;
    while (!is_ready[s] || chosen-- > 0)
        s++;
    return s;
}

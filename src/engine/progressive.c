/* See progressive.h. */
#include "engine/progressive.h"

#include "base/text.h"

#include <string.h>

enum { MAX_SIDE = 65536, STEP = 32 };

cvy_status cvy_progressive_parse(const char *text, int64_t n_epochs, struct cvy_progressive *out) {
    int64_t number[3] = {0, 0, STEP};
    int n = 0;
    bool is_good = true;
    for (const char *at = text; is_good; at++) {
        char piece[16];
        size_t length = strcspn(at, ":");
        is_good = n < 3 && length < sizeof piece;
        if (is_good) {
            memcpy(piece, at, length);
            piece[length] = 0;
            is_good = cvy_parse_i64(piece, &number[n]) && number[n] >= 1 && number[n] <= MAX_SIDE;
            n++;
        }
        at += length;
        if (!*at)
            break;
    }
    if (!is_good || n < 2)
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--progressive-resize %s: must be like 160:224, or with a step 160:224:16", text);
    if (number[0] > number[1])
        return CVY_FAIL(CVY_ERR_USAGE,
                        "--progressive-resize %s: images grow, so the first size is the smaller", text);
    *out = (struct cvy_progressive){number[0], number[1], number[2], n_epochs};
    return CVY_OK;
}

int64_t cvy_progressive_side(const struct cvy_progressive *p, int64_t epoch) {
    const int64_t growth = p->last - p->first, n = p->n_epochs - 1;
    if (epoch >= n)
        return p->last;
    /* growth epoch / (n step), rounded: at most 2^16 2^24 2 */
    const int64_t side = p->first + (2 * growth * epoch + n * p->step) / (2 * n * p->step) * p->step;
    return side < p->last ? side : p->last;
}

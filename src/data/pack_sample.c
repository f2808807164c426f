/* See pack_sample.h. */
#include "data/pack_sample.h"

#include "data/decode.h"
#include "data/encode_jpeg.h"
#include "data/file_facts.h"
#include "data/pack.h"

#include <stdlib.h>
#include <string.h>

void cvy_pack_memory_free(struct cvy_pack_memory *memory) {
    cvy_image_free(&memory->whole);
    cvy_image_free(&memory->small);
    cvy_resizer_free(&memory->resizer);
}

/* The same image of a longer side of max_side, in place of the bytes. */
static cvy_status make_smaller(int64_t max_side, struct cvy_pack_memory *memory,
                               struct cvy_pack_sample *sample) {
    struct cvy_image *whole = &memory->whole;
    unsigned char *encoded;
    size_t n_encoded;
    CVY_TRY(cvy_decode(sample->bytes, sample->n_bytes, CVY_MAX_PIXELS, false, NULL, whole));
    const int64_t h = whole->height, w = whole->width, longer = h > w ? h : w;
    int64_t height = (h * max_side + longer / 2) / longer, width = (w * max_side + longer / 2) / longer;
    CVY_TRY(cvy_resize(&memory->resizer, whole, height ? height : 1, width ? width : 1, &memory->small));
    CVY_TRY(cvy_encode_jpeg(&memory->small, CVY_PACK_QUALITY, &encoded, &n_encoded));
    free(sample->bytes);
    sample->bytes = (char *)encoded;
    sample->n_bytes = n_encoded;
    sample->suffix = "jpg";
    sample->is_smaller = true;
    return CVY_OK;
}

/* Only files that seem to end too early are decoded here; the decoder has the last word, as in a training. */
static cvy_status check_end(const struct cvy_file_facts *facts, struct cvy_pack_memory *memory,
                            const struct cvy_pack_sample *sample) {
    if (!facts->is_truncated)
        return CVY_OK;
    cvy_status status =
        cvy_decode(sample->bytes, sample->n_bytes, CVY_MAX_PIXELS, false, NULL, &memory->whole);
    return status == CVY_ERR_DATA
               ? cvy_fail_prefix(status, "is cut off, `convoy data check` lists all such: ")
               : status;
}

static cvy_status finish(const struct cvy_dataset *dataset, int64_t i, int64_t max_side,
                         struct cvy_pack_memory *memory, struct cvy_pack_sample *sample) {
    struct cvy_file_facts facts = {0};
    cvy_file_facts(sample->bytes, sample->n_bytes, &facts);
    if (!facts.format)
        return CVY_FAIL(CVY_ERR_DATA, "is no JPEG, PNG or WebP image: `convoy data check` lists all such");
    CVY_TRY(check_end(&facts, memory, sample));
    sample->suffix = strcmp(facts.format, "JPEG") == 0  ? "jpg"
                     : strcmp(facts.format, "PNG") == 0 ? "png"
                                                        : "webp";
    if (max_side && (facts.width > max_side || facts.height > max_side))
        CVY_TRY(make_smaller(max_side, memory, sample));
    CVY_TRY(cvy_dataset_label(dataset, i, &sample->label));
    return CVY_OK;
}

cvy_status cvy_pack_sample_make(const struct cvy_dataset *dataset, int64_t i, int64_t max_side,
                                struct cvy_pack_memory *memory, struct cvy_pack_sample *out) {
    *out = (struct cvy_pack_sample){0};
    CVY_TRY(dataset->format->encoded(dataset, i, &out->bytes, &out->n_bytes));
    cvy_status status = finish(dataset, i, max_side, memory, out);
    if (status == CVY_OK)
        return CVY_OK;
    free(out->bytes);
    out->bytes = NULL;
    return status == CVY_ERR_DATA ? cvy_dataset_name_error(dataset, i, status) : status;
}

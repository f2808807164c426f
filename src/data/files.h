/* Samples that are image files, one each: what folder:DIR and cvy_dataset_open_files make. */
#ifndef CVY_DATA_FILES_H
#define CVY_DATA_FILES_H

#include "base/mem.h"
#include "base/vec.h"
#include "data/data.h"

/* Where a list of images has no validation part, one of this many of each class is held out. */
enum { CVY_HOLD_OUT = 10 };
static inline bool cvy_is_held_out(int64_t i) {
    return i % CVY_HOLD_OUT == CVY_HOLD_OUT - 1;
} /* i: in its class */

enum cvy_keep { CVY_KEEP_ALL, CVY_KEEP_TRAIN, CVY_KEEP_HELD_OUT };
static inline bool cvy_is_kept(enum cvy_keep keep, int64_t i) {
    return keep == CVY_KEEP_ALL || cvy_is_held_out(i) == (keep == CVY_KEEP_HELD_OUT);
}

struct cvy_file_sample {
    const char *path; /* in `pool` or `paths` */
    int64_t label;
};

struct cvy_file_set {
    struct cvy_dataset head;
    CVY_VEC(struct cvy_file_sample) samples;
    struct cvy_pool pool;
    char *paths;       /* of samples, one behind the other */
    int64_t opened_ns; /* when, since 1970 */
};

/* An empty set of RGB images of any size, normalised as torchvision's ImageNet models expect. */
cvy_status cvy_file_set_new(struct cvy_file_set **out);

/* The slots of struct cvy_format. */
void cvy_file_set_free(struct cvy_dataset *dataset);
cvy_status cvy_file_set_label(const struct cvy_dataset *dataset, int64_t i, int64_t *out);
cvy_status cvy_file_set_encoded(const struct cvy_dataset *dataset, int64_t i, char **out, size_t *n_bytes);
const char *cvy_file_set_path(const struct cvy_dataset *dataset, int64_t i);

#endif

/* Listing of directories, sorted by bytes (for UTF-8 that is by code point, as Python sorts names). */
#ifndef CVY_DATA_SCAN_H
#define CVY_DATA_SCAN_H

#include "base/mem.h"
#include "base/vec.h"

#include <stdbool.h>

struct cvy_names {
    CVY_VEC(const char *) names;
};

/* The folders right below `path`, hidden ones left out. Names go to `pool`, the array to the caller, who calls
   cvy_vec_free. CVY_ERR_DATA: `path` is missing or no folder. */
cvy_status cvy_scan_folders(const char *path, struct cvy_pool *pool, struct cvy_names *out);

/* The paths of the image files below `path` at any depth, by extension (.jpg .jpeg .png .webp, in any case), hidden
   files and folders left out; sorted by folder, then by name, as torchvision's ImageFolder does. */
cvy_status cvy_scan_images(const char *path, struct cvy_pool *pool, struct cvy_names *out);

/* Of two `const char *`, for qsort. */
int cvy_compare_names(const void *a, const void *b);

/* By extension, as cvy_scan_images has it. */
bool cvy_is_image_name(const char *name);
bool cvy_is_folder(const char *path);

#endif

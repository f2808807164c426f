/* Listing of directories, sorted by bytes (for UTF-8 that is by code point, as Python sorts names). */
#ifndef CVY_DATA_SCAN_H
#define CVY_DATA_SCAN_H

#include "base/mem.h"
#include "base/vec.h"
#include "data/others.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct cvy_names {
    CVY_VEC(const char *) names;
};

/* The folders right below `path`, hidden ones left out. Names go to `pool`, the array to the caller, who calls
   cvy_vec_free. CVY_ERR_DATA: `path` is missing or no folder. */
cvy_status cvy_scan_folders(const char *path, struct cvy_pool *pool, struct cvy_names *out);

/* What lies right below a folder, unsorted: folders, and image files by extension (.jpg .jpeg .png .webp, in any case),
   broken links and pipes of such names, too. Hidden ones, whose names begin with a dot, and images that cannot be read
   (.bmp .gif .tif …) are counted only. */
struct cvy_listing {
    struct cvy_names folders, files;
    uint64_t n_hidden_folders, n_hidden_images;
    struct cvy_others others;
    uint64_t n_broken_links;    /* they may come to life without a change of this folder */
    int64_t mtime_ns, ctime_ns; /* of the folder, before it was read */
};
cvy_status cvy_scan_folder(const char *path, struct cvy_pool *pool, struct cvy_listing *out);
void cvy_listing_free(struct cvy_listing *listing);

/* Of two `const char *`, for qsort. */
int cvy_compare_names(const void *a, const void *b);

/* By extension, as cvy_scan_folder has it. */
bool cvy_is_image_name(const char *name);
bool cvy_is_folder(const char *path);
int64_t cvy_time_ns(struct timespec time);

#endif

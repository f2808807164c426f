/* For tests of formats: a fresh folder for each test, files in it, and what a data set must hold. */
#ifndef CVY_DATA_DATA_FIXTURE_H
#define CVY_DATA_DATA_FIXTURE_H

#include "base/file.h"
#include "data/data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char root[64];

static int make_root(void **state) {
    (void)state;
    strcpy(root, "/tmp/convoy-data-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static inline void put(const char *name, const void *bytes, size_t n_bytes) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    assert_int_equal(cvy_write_file(path, bytes, n_bytes), CVY_OK);
}

/* "PREFIX:root/NAME" */
static inline cvy_status open_below(const char *prefix, const char *name, cvy_split split,
                                    struct cvy_dataset **out) {
    char spec[512];
    snprintf(spec, sizeof spec, "%s:%s/%s", prefix, root, name);
    return cvy_dataset_open(spec, split, NULL, out);
}

static inline struct cvy_dataset *open_ok_below(const char *prefix, const char *name, cvy_split split) {
    struct cvy_dataset *dataset;
    if (open_below(prefix, name, split, &dataset) != CVY_OK)
        fail_msg("%s", cvy_error());
    return dataset;
}

static inline void expect_refused_below(const char *prefix, const char *name, cvy_split split,
                                        const char *part) {
    struct cvy_dataset *dataset = NULL;
    assert_int_equal(open_below(prefix, name, split, &dataset), CVY_ERR_DATA);
    assert_null(dataset);
    if (!strstr(cvy_error(), part) || !strstr(cvy_error(), root))
        fail_msg("the error '%s' does not say '%s' of %s", cvy_error(), part, root);
}

#endif

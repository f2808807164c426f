/* folder:DIR on trees that are made for each test below a fresh folder. Files hold nothing: the scan reads none. */
#include "data/cache.h"
#include "data/data_fixture.h"
#include "data/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes root/PATH with the folders above it; "x/" is an empty folder. */
static void make(const char *path) {
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0777);
        *slash = '/';
    }
    if (full[strlen(full) - 1] == '/')
        return;
    int fd = open(full, O_CREAT | O_WRONLY, 0666);
    assert_true(fd >= 0);
    close(fd);
}

static cvy_status open_split(cvy_split split, struct cvy_dataset **out) {
    char spec[128];
    snprintf(spec, sizeof spec, "folder:%s", root);
    return cvy_dataset_open(spec, split, NULL, out);
}

/* "class:path class:path …", paths below the root. */
static void expect_samples(cvy_split split, const char *expected) {
    struct cvy_dataset *dataset;
    char found[4096] = "";
    if (open_split(split, &dataset) != CVY_OK)
        fail_msg("%s", cvy_error());
    for (int64_t i = 0; i < cvy_dataset_size(dataset); i++) {
        int64_t label;
        size_t n = strlen(found);
        assert_int_equal(dataset->format->label(dataset, i, &label), CVY_OK);
        snprintf(found + n, sizeof found - n, "%s%s:%s", i ? " " : "", cvy_dataset_class_name(dataset, label),
                 dataset->format->path(dataset, i) + strlen(root) + 1);
    }
    assert_string_equal(found, expected);
    cvy_dataset_free(dataset);
}

static void expect_refused(cvy_split split, const char *part) {
    struct cvy_dataset *dataset = NULL;
    assert_int_equal(open_split(split, &dataset), CVY_ERR_DATA);
    assert_null(dataset);
    if (!strstr(cvy_error(), part) || !strstr(cvy_error(), root))
        fail_msg("the error '%s' does not say '%s' of %s", cvy_error(), part, root);
}

static void classes_and_samples_are_sorted(void **state) {
    (void)state;
    static const char *const files[] = {"dog/10.jpg",  "dog/2.PNG",        "dog/a.txt",  "Cat/b.Jpeg",
                                        "Cat/x/z.png", "Cat/x-1/a.png",    ".git/a.png", "Cat/.hidden.png",
                                        "readme.png",  "\xC3\xA9mu/1.jpg", "zebra/1.jpg"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        make(files[i]);
    expect_samples(CVY_SPLIT_TRAIN,
                   "Cat:Cat/b.Jpeg Cat:Cat/x/z.png Cat:Cat/x-1/a.png dog:dog/10.jpg dog:dog/2.PNG "
                   "zebra:zebra/1.jpg \xC3\xA9mu:\xC3\xA9mu/1.jpg");
}

static void links_are_followed(void **state) {
    (void)state;
    char from[128];
    make("elsewhere.png");
    make("a/");
    snprintf(from, sizeof from, "%s/a/link.png", root);
    assert_int_equal(symlink("../elsewhere.png", from), 0);
    snprintf(from, sizeof from, "%s/a/broken.png", root);
    assert_int_equal(symlink("nowhere", from), 0);
    expect_samples(CVY_SPLIT_TRAIN, "a:a/broken.png a:a/link.png"); /* who reads the broken one is told */
    snprintf(from, sizeof from, "%s/a/circle", root);
    assert_int_equal(symlink(".", from), 0);
    expect_refused(CVY_SPLIT_TRAIN, "is a link circular?");
}

static void splits_lie_side_by_side(void **state) {
    (void)state;
    make("train/a/1.png");
    make("train/b/1.png");
    make("test/b/2.png");
    expect_samples(CVY_SPLIT_TRAIN, "a:train/a/1.png b:train/b/1.png");
    expect_samples(CVY_SPLIT_VAL, "b:test/b/2.png");
    make("val/a/3.png"); /* val goes before test */
    expect_samples(CVY_SPLIT_VAL, "a:val/a/3.png");
    make("val/c/1.png");
    expect_refused(CVY_SPLIT_VAL, "val/c: a class that");
}

static void val_alone_can_be_evaluated(void **state) {
    (void)state;
    make("val/a/1.png");
    expect_samples(CVY_SPLIT_VAL, "a:val/a/1.png");
    expect_refused(CVY_SPLIT_TRAIN, "no train beside it");
}

static int n_remarks;

static void count_remark(void *context, cvy_log_level level, const char *line) {
    (void)context, (void)level;
    n_remarks += strstr(line, "held out") != NULL;
}

static void every_tenth_image_is_held_out(void **state) {
    (void)state;
    struct cvy_dataset *dataset;
    const cvy_log_sink log = {.write = count_remark};
    char path[64], spec[128];
    for (int i = 0; i < 23; i++) {
        snprintf(path, sizeof path, "a/%02d.png", i);
        make(path);
    }
    make("b/1.png");
    expect_samples(CVY_SPLIT_VAL, "a:a/09.png a:a/19.png");
    expect_samples(CVY_SPLIT_TRAIN,
                   "a:a/00.png a:a/01.png a:a/02.png a:a/03.png a:a/04.png a:a/05.png a:a/06.png a:a/07.png "
                   "a:a/08.png a:a/10.png a:a/11.png a:a/12.png a:a/13.png a:a/14.png a:a/15.png a:a/16.png "
                   "a:a/17.png a:a/18.png a:a/20.png a:a/21.png a:a/22.png b:b/1.png");
    snprintf(spec, sizeof spec, "folder:%s", root);
    n_remarks = 0;
    assert_int_equal(cvy_dataset_open(spec, CVY_SPLIT_VAL, &log, &dataset), CVY_OK);
    assert_int_equal(n_remarks, 1);
    cvy_dataset_free(dataset);
}

static void bad_folders_are_named(void **state) {
    (void)state;
    struct cvy_dataset *dataset;
    expect_refused(CVY_SPLIT_TRAIN, "holds no folders");
    make("a/1.png");
    expect_refused(CVY_SPLIT_VAL, "none is held out");
    make("b/readme.txt");
    make("c/");
    expect_refused(CVY_SPLIT_TRAIN, "2 class folders without images (.jpg, .jpeg, .png, .webp): b, c");
    make("train/");
    expect_refused(CVY_SPLIT_TRAIN, "train: holds no folders");
    assert_int_equal(cvy_dataset_open("folder:/absent", CVY_SPLIT_TRAIN, NULL, &dataset), CVY_ERR_DATA);
    assert_non_null(strstr(cvy_error(), "/absent: cannot be opened as a folder: No such file"));
    assert_int_equal(cvy_dataset_open("folder:", CVY_SPLIT_TRAIN, NULL, &dataset), CVY_ERR_USAGE);
}

static char remarks[4096];

static void keep_remark(void *context, cvy_log_level level, const char *line) {
    (void)context, (void)level;
    strcat(strcat(remarks, line), "\n");
}

static void what_is_left_out_is_said(void **state) {
    (void)state;
    static const char *const files[] = {
        "train/a/1.png", "train/a/._1.png", "train/a/.note", "train/.git/x.png", "train/a/.x/1.png",
        "train/b/1.png", "train/c/1.png",   "val/b/1.png",   "train/loose.png",  "val/a/"};
    const cvy_log_sink log = {.write = keep_remark};
    struct cvy_dataset *dataset;
    char spec[128];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        make(files[i]);
    snprintf(spec, sizeof spec, "folder:%s", root);
    for (int split = CVY_SPLIT_TRAIN; split <= CVY_SPLIT_VAL; split++) {
        remarks[0] = '\0';
        assert_int_equal(cvy_dataset_open(spec, (cvy_split)split, &log, &dataset), CVY_OK);
        cvy_dataset_free(dataset);
        assert_non_null(strstr(remarks, split == CVY_SPLIT_TRAIN
                                            ? "hidden ones are left out: 1 images, 2 folders"
                                            : "2 of 3 classes have no images: a, c"));
    }
}

/* Folders that changed long ago, so that what is found may be kept. */
static void age(const char *path) {
    const struct timespec times[2] = {{1000000000, 0}, {1000000000, 0}};
    char full[256];
    snprintf(full, sizeof full, "%s/%s", root, path);
    assert_int_equal(utimensat(AT_FDCWD, full, times, 0), 0);
}

static void the_index_is_kept(void **state) {
    (void)state;
    char cache[128], *file, *bytes;
    size_t n_bytes;
    make("a/x/1.png");
    make("b/1.png");
    snprintf(cache, sizeof cache, "%s-cache", root);
    assert_int_equal(setenv("XDG_CACHE_HOME", cache, 1), 0);
    assert_int_equal(cvy_cache_path(root, &file), CVY_OK);
    expect_samples(CVY_SPLIT_TRAIN, "a:a/x/1.png b:b/1.png");
    assert_int_equal(access(file, F_OK), -1); /* everything is fresh */
    static const char *const folders[] = {"", "a", "a/x", "b"};
    for (size_t i = 0; i < 4; i++)
        age(folders[i]);
    expect_samples(CVY_SPLIT_TRAIN, "a:a/x/1.png b:b/1.png");
    /* what is kept is what is taken */
    assert_true(cvy_cache_load(file, "CVYDIR3\n", 1 << 20, &bytes, &n_bytes));
    assert_string_equal(bytes + n_bytes - 6, "1.png");
    bytes[n_bytes - 6] = '7';
    assert_true(cvy_cache_store(file, "CVYDIR3\n", bytes, n_bytes));
    expect_samples(CVY_SPLIT_TRAIN, "a:a/x/1.png b:b/7.png");
    /* of another form, or broken: made anew */
    assert_true(cvy_cache_store(file, "CVYDIR3\n", bytes, n_bytes - 6));
    free(bytes);
    expect_samples(CVY_SPLIT_TRAIN, "a:a/x/1.png b:b/1.png");
    assert_true(cvy_cache_load(file, "CVYDIR3\n", 1 << 20, &bytes, &n_bytes) && (free(bytes), true));
    assert_int_equal(truncate(file, 30), 0);
    expect_samples(CVY_SPLIT_TRAIN, "a:a/x/1.png b:b/1.png");
    /* a folder that changed, though its time was set back */
    make("a/x/2.png");
    age("a/x");
    expect_samples(CVY_SPLIT_TRAIN, "a:a/x/1.png a:a/x/2.png b:b/1.png");
    /* nowhere to write */
    assert_int_equal(setenv("XDG_CACHE_HOME", "/dev/null", 1), 0);
    expect_samples(CVY_SPLIT_TRAIN, "a:a/x/1.png a:a/x/2.png b:b/1.png");
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(unlink(file), 0);
    free(file);
    snprintf(cache, sizeof cache, "rm -r %s-cache", root);
    assert_int_equal(system(cache), 0);
}

static void a_file_that_changes_under_way_is_named(void **state) {
    (void)state;
    const struct timespec later[2] = {{4000000000, 0}, {4000000000, 0}};
    struct cvy_dataset *dataset;
    struct cvy_image image = {0};
    make("a/1.png");
    assert_int_equal(open_split(CVY_SPLIT_TRAIN, &dataset), CVY_OK);
    const char *path = dataset->format->path(dataset, 0);
    assert_int_equal(cvy_dataset_read(dataset, 0, NULL, &image), CVY_ERR_DATA);
    assert_non_null(strstr(cvy_error(), "the file is empty"));
    assert_int_equal(utimensat(AT_FDCWD, path, later, 0), 0); /* strange, but no change */
    assert_int_equal(cvy_dataset_read(dataset, 0, NULL, &image), CVY_ERR_DATA);
    assert_non_null(strstr(cvy_error(), "the file is empty"));
    assert_int_equal(utimensat(AT_FDCWD, path, NULL, 0), 0); /* now: that may be the file system's clock */
    assert_int_equal(cvy_dataset_read(dataset, 0, NULL, &image), CVY_ERR_DATA);
    assert_non_null(strstr(cvy_error(), "the file is empty"));
    ((struct cvy_file_set *)dataset)->opened_ns -= 10000000000; /* as if ten seconds ago */
    assert_int_equal(cvy_dataset_read(dataset, 0, NULL, &image), CVY_ERR_DATA);
    assert_non_null(strstr(cvy_error(), "a/1.png: was changed since the data set was opened"));
    cvy_image_free(&image);
    cvy_dataset_free(dataset);
}

#define IN_FRESH_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FRESH_ROOT(classes_and_samples_are_sorted),
        IN_FRESH_ROOT(links_are_followed),
        IN_FRESH_ROOT(splits_lie_side_by_side),
        IN_FRESH_ROOT(val_alone_can_be_evaluated),
        IN_FRESH_ROOT(every_tenth_image_is_held_out),
        IN_FRESH_ROOT(bad_folders_are_named),
        IN_FRESH_ROOT(what_is_left_out_is_said),
        IN_FRESH_ROOT(the_index_is_kept),
        IN_FRESH_ROOT(a_file_that_changes_under_way_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

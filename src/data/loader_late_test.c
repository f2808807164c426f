/* Workers that do not come back, workers that are shared, epochs that begin in their middle without reading what came
   before. */
#include "data/fake_set.h"
#include "data/loader.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SIDE = 4, N = 60, BATCH = 8 };

/* Held by the test until the program ends: who waits for it never comes back. */
static pthread_mutex_t never = PTHREAD_MUTEX_INITIALIZER;
static atomic_int n_freed;

static const char *fake_path(const struct cvy_dataset *dataset, int64_t i) {
    (void)dataset;
    return i == 41 ? "photos/cat/41.jpg" : "photos/other.jpg";
}

static void fake_free(struct cvy_dataset *dataset) {
    atomic_fetch_add(&n_freed, 1);
    free(dataset);
}

static const struct cvy_format fake_format = {
    .prefix = "fake", .pixels = fake_pixels, .label = fake_label, .path = fake_path, .free = fake_free};

static struct fake *make_fake(int64_t stuck) {
    struct fake *fake = calloc(1, sizeof *fake);
    assert_non_null(fake);
    *fake = fake_set(N, SIDE, &fake_format);
    fake->head.spec = strdup("fake");
    assert_int_equal(cvy_dataset_number_classes(&fake->head, FAKE_CLASSES), CVY_OK);
    fake->stuck = stuck;
    fake->never = &never;
    return fake;
}

static cvy_loader *make_loader(struct fake *fake, int workers, int64_t accumulate) {
    cvy_loader_options options;
    cvy_loader *loader;
    cvy_loader_defaults(&options);
    options.batch_size = BATCH;
    options.workers = workers;
    options.accumulate = accumulate;
    options.shuffle = false;
    if (cvy_loader_new(&fake->head, &options, &loader) != CVY_OK)
        fail_msg("%s", cvy_error());
    return loader;
}

/* Threads of this process with the workers' name. */
static int count_workers(void) {
    int n = 0;
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file) {
            n += fgets(name, sizeof name, file) && strcmp(name, "cvy-loader\n") == 0;
            fclose(file);
        }
    }
    closedir(folder);
    return n;
}

/* A thread that has ended may be listed a little longer. */
static void expect_workers(int n) {
    const struct timespec nap = {.tv_nsec = 5000000};
    for (int i = 0; i < 1000 && count_workers() != n; i++)
        nanosleep(&nap, NULL);
    assert_int_equal(count_workers(), n);
}

/* ---- the tests --------------------------------------------------------------------------------------------- */

/* `first` batches are good, then the error names the file. Nothing hangs, and what the worker may yet touch stays. */
static void an_image_that_never_comes_is_named(void **state) {
    (void)state;
    for (int64_t stuck = 0; stuck <= 41; stuck += 41) {
        struct fake *fake = make_fake(stuck);
        cvy_loader *loader = make_loader(fake, 3, 1);
        const int n_freed_before = atomic_load(&n_freed);
        cvy_batch batch;
        cvy_status status;
        int64_t n_good = 0;
        cvy_loader_set_deadline(loader, 0.3);
        assert_int_equal(cvy_loader_start(loader, 0), CVY_OK);
        while ((status = cvy_loader_next(loader, &batch)) == CVY_OK)
            n_good++;
        assert_int_equal(status, CVY_ERR_LOST);
        assert_int_equal(n_good, stuck / BATCH);
        assert_ptr_equal(strstr(cvy_error(), stuck ? "photos/cat/41.jpg: " : "photos/other.jpg: "),
                         cvy_error());
        assert_non_null(strstr(cvy_error(), "not read within 0.3 seconds"));
        assert_int_equal(cvy_loader_next(loader, &batch), CVY_ERR_LOST); /* and it stays */
        assert_int_equal(cvy_loader_start(loader, 1), CVY_ERR_LOST);
        cvy_loader_free(loader);
        cvy_dataset_free(&fake->head);
        assert_int_equal(atomic_load(&n_freed), n_freed_before);
    }
}

static void two_loaders_share_one_pool(void **state) {
    (void)state;
    struct fake *fake = make_fake(-1);
    cvy_loader *train = make_loader(fake, 3, 1), *val = make_loader(fake, 3, 1),
               *other = make_loader(fake, 2, 1);
    cvy_batch batch;
    expect_workers(8);
    assert_int_equal(cvy_loader_join(other, train), CVY_ERR_USAGE);
    assert_int_equal(cvy_loader_join(val, train), CVY_OK);
    assert_int_equal(cvy_loader_join(val, train), CVY_OK);
    expect_workers(5);
    for (int round = 0; round < 3; round++) {
        int64_t n = 0;
        assert_int_equal(cvy_loader_start(train, round), CVY_OK);
        for (int b = 0; b < 3; b++)
            assert_int_equal(cvy_loader_next(train, &batch), CVY_OK);
        assert_int_equal(cvy_loader_start(val, 0), CVY_OK);
        while (cvy_loader_next(val, &batch) == CVY_OK) {
            assert_int_equal(batch.indices[0], n);
            assert_int_equal(((const uint8_t *)batch.images)[0], n * 31 % 256);
            n += batch.n;
        }
        assert_int_equal(n, N);
        assert_int_equal(cvy_loader_next(train, &batch), CVY_END); /* ended by the other */
    }
    cvy_loader_free(train); /* the pool lives on */
    assert_int_equal(cvy_loader_start(val, 0), CVY_OK);
    assert_int_equal(cvy_loader_next(val, &batch), CVY_OK);
    cvy_loader_free(val);
    cvy_loader_free(other);
    expect_workers(0);
    cvy_dataset_free(&fake->head);
}

/* Only what comes from there on is read: the rotten image before it does not count, nor is it noted. */
static void what_is_left_out_is_not_read(void **state) {
    (void)state;
    for (int workers = 0; workers <= 3; workers += 3) {
        struct fake *fake = make_fake(-1);
        cvy_loader *loader = make_loader(fake, workers, 2);
        cvy_batch batch;
        int64_t at = 4 * BATCH;
        fake->bad_image = 3;
        assert_int_equal(cvy_loader_start_at(loader, 0, 5), CVY_ERR_USAGE); /* 8 batches, 4 updates */
        assert_int_equal(cvy_loader_start_at(loader, 0, -1), CVY_ERR_USAGE);
        assert_int_equal(cvy_loader_skip_bad(loader), CVY_OK);
        assert_int_equal(cvy_loader_start_at(loader, 0, 2), CVY_OK);
        while (cvy_loader_next(loader, &batch) == CVY_OK) {
            assert_int_equal(batch.indices[0], at);
            at += batch.n;
        }
        assert_int_equal(at, N);
        assert_int_equal(atomic_load(&fake->n_reads), N - 4 * BATCH);
        assert_int_equal(cvy_bad_list_tell(cvy_loader_bad(loader), NULL, NULL), 0);
        assert_int_equal(cvy_loader_start_at(loader, 0, 4), CVY_OK); /* all of it is done */
        assert_int_equal(cvy_loader_next(loader, &batch), CVY_END);
        cvy_loader_free(loader);
        cvy_dataset_free(&fake->head);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_loaders_share_one_pool), cmocka_unit_test(what_is_left_out_is_not_read),
        cmocka_unit_test(an_image_that_never_comes_is_named), /* last: its workers stay */
    };
    pthread_mutex_lock(&never);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The loader: same batches whatever the workers, every sample once an epoch, errors that name the sample. */
#include "data/fake_set.h"
#include "data/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SIDE = 5 };

static const struct cvy_format fake_format = {.prefix = "fake", .pixels = fake_pixels, .label = fake_label};

static struct fake make_fake(int64_t n) {
    struct fake fake = fake_set(n, SIDE, &fake_format);
    fake.head.preset = "cifar";
    return fake;
}

static cvy_loader *make_loader(const struct cvy_dataset *dataset, int64_t batch_size, int workers) {
    cvy_loader_options options;
    cvy_loader *loader;
    cvy_loader_defaults(&options);
    options.batch_size = batch_size;
    options.workers = workers;
    options.seed = 5;
    options.random_erase = 0.5;
    if (cvy_loader_new(dataset, &options, &loader) != CVY_OK)
        fail_msg("%s", cvy_error());
    return loader;
}

/* ---- the tests --------------------------------------------------------------------------------------- */

/* Everything that an epoch yields, as bytes. Freed by the caller. */
static uint8_t *record(cvy_loader *loader, int64_t epoch, size_t *n_bytes) {
    cvy_batch batch;
    uint8_t *bytes = NULL;
    cvy_status status;
    *n_bytes = 0;
    assert_int_equal(cvy_loader_start(loader, epoch), CVY_OK);
    while ((status = cvy_loader_next(loader, &batch)) == CVY_OK) {
        size_t n = (size_t)batch.n, n_image = (size_t)(batch.channels * batch.height * batch.width);
        assert_int_equal((uintptr_t)batch.images % 4096, 0); /* whole pages */
        bytes = realloc(bytes, *n_bytes + n * (n_image + 16));
        memcpy(bytes + *n_bytes, batch.images, n * n_image);
        memcpy(bytes + *n_bytes + n * n_image, batch.labels, n * 8);
        memcpy(bytes + *n_bytes + n * (n_image + 8), batch.indices, n * 8);
        *n_bytes += n * (n_image + 16);
    }
    assert_int_equal(status, CVY_END);
    assert_int_equal(cvy_loader_next(loader, &batch), CVY_END);
    return bytes;
}

static void workers_do_not_change_the_batches(void **state) {
    (void)state;
    struct fake fake = make_fake(103);
    for (int64_t batch_size = 1; batch_size <= 103; batch_size += 17) {
        for (int64_t epoch = 0; epoch < 2; epoch++) {
            static const int workers[] = {0, 1, 3, 7};
            size_t n[4];
            uint8_t *bytes[4];
            for (int k = 0; k < 4; k++) {
                fake.max_delay_us = k ? 60 : 0;
                cvy_loader *loader = make_loader(&fake.head, batch_size, workers[k]);
                bytes[k] = record(loader, epoch, &n[k]);
                cvy_loader_free(loader);
                assert_int_equal(n[k], n[0]);
                assert_memory_equal(bytes[k], bytes[0], n[0]);
            }
            for (int k = 0; k < 4; k++)
                free(bytes[k]);
        }
    }
}

/* Each sample three times one after another, augmented otherwise each time; the last ones of an epoch fewer times. */
static void repeated_samples_are_augmented_anew(void **state) {
    (void)state;
    enum { N = 103, TIMES = 3, N_IMAGE = SIDE * SIDE };
    struct fake fake = make_fake(N);
    cvy_loader *loader = make_loader(&fake.head, N, 0);
    cvy_batch batch;
    int n_other = 0;
    assert_int_equal(cvy_loader_repeat(loader, N + 1), CVY_ERR_USAGE);
    assert_int_equal(cvy_loader_repeat(loader, TIMES), CVY_OK);
    assert_int_equal(cvy_loader_start(loader, 1), CVY_OK);
    assert_int_equal(cvy_loader_next(loader, &batch), CVY_OK);
    assert_int_equal(batch.n, N);
    for (int i = 0; i < N; i++) {
        const uint8_t *image = (const uint8_t *)batch.images + i * N_IMAGE;
        bool is_same = i > 0 && batch.indices[i] == batch.indices[i - 1];
        assert_true(is_same == (i % TIMES != 0));
        n_other += is_same && memcmp(image, image - N_IMAGE, N_IMAGE) != 0;
    }
    assert_true(n_other > N / 2);
    assert_int_equal(cvy_loader_next(loader, &batch), CVY_END);
    cvy_loader_free(loader);
}

static void an_epoch_is_a_function_of_its_number(void **state) {
    (void)state;
    struct fake fake = make_fake(50);
    cvy_loader *loader = make_loader(&fake.head, 16, 2);
    size_t n, n_other;
    uint8_t *first = record(loader, 1, &n), *other = record(loader, 2, &n_other),
            *again = record(loader, 1, &n);
    assert_int_equal(n, n_other);
    assert_memory_equal(first, again, n);
    assert_memory_not_equal(first, other, n);
    free(first);
    free(other);
    free(again);
    cvy_loader_free(loader);
}

static void each_sample_comes_once(void **state) {
    (void)state;
    enum { N = 101, BATCH = 25 };
    struct fake fake = make_fake(N);
    cvy_loader *loader = make_loader(&fake.head, BATCH, 3);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int seen[N] = {0}, n_in_place = 0;
        int64_t at = 0;
        cvy_batch batch;
        assert_int_equal(cvy_loader_start(loader, epoch), CVY_OK);
        while (cvy_loader_next(loader, &batch) == CVY_OK) {
            assert_int_equal(batch.n, at < 100 ? BATCH : 1);
            for (int64_t k = 0; k < batch.n; k++, at++) {
                seen[batch.indices[k]]++;
                n_in_place += batch.indices[k] == at;
                assert_int_equal(batch.labels[k], batch.indices[k] % FAKE_CLASSES);
            }
        }
        for (int i = 0; i < N; i++)
            assert_int_equal(seen[i], 1);
        assert_true(n_in_place < 10); /* on average one stays where it was */
    }
    cvy_loader_free(loader);
}

static void without_shuffle_samples_come_as_they_lie(void **state) {
    (void)state;
    struct fake fake = make_fake(10);
    cvy_loader_options options;
    cvy_loader *loader;
    cvy_batch batch;
    cvy_loader_defaults(&options);
    options.shuffle = options.augment = false;
    options.batch_size = 64; /* larger than the set: allowed in evaluation */
    assert_int_equal(cvy_loader_new(&fake.head, &options, &loader), CVY_OK);
    assert_int_equal(cvy_loader_start(loader, 4), CVY_OK);
    assert_int_equal(cvy_loader_next(loader, &batch), CVY_OK);
    assert_int_equal(batch.n, 10);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(batch.indices[i], i);
        assert_int_equal(((const uint8_t *)batch.images)[i * SIDE * SIDE + 3], (uint8_t)(i * 31 + 3));
    }
    assert_int_equal(cvy_loader_next(loader, &batch), CVY_END);
    cvy_loader_free(loader);
}

static void a_batch_stays_until_the_next_call(void **state) {
    (void)state;
    struct fake fake = make_fake(64);
    cvy_loader *loader = make_loader(&fake.head, 8, 3);
    cvy_batch batch;
    uint8_t copy[8 * SIDE * SIDE];
    const struct timespec while_workers_run = {.tv_nsec = 5000000};
    assert_int_equal(cvy_loader_start(loader, 0), CVY_OK);
    for (int b = 0; b < 8; b++) {
        assert_int_equal(cvy_loader_next(loader, &batch), CVY_OK);
        memcpy(copy, batch.images, sizeof copy);
        nanosleep(&while_workers_run, NULL);
        assert_memory_equal(copy, batch.images, sizeof copy);
        assert_true(atomic_load(&fake.n_reads) <= 8 * (b + 3)); /* this batch and two ahead */
    }
    cvy_loader_free(loader);
}

/* The first bad position decides, whatever the workers: all agree on the batch and the message. */
static void errors_come_in_order(void **state) {
    (void)state;
    char message[2][512];
    int n_good[2];
    for (int k = 0; k < 2; k++) {
        struct fake fake = make_fake(100);
        fake.bad_image = 17;
        fake.bad_image_2 = 60;
        fake.max_delay_us = 300;
        cvy_loader *loader = make_loader(&fake.head, 40, k ? 5 : 0);
        cvy_batch batch;
        n_good[k] = 0;
        assert_int_equal(cvy_loader_start(loader, 0), CVY_OK);
        while (cvy_loader_next(loader, &batch) == CVY_OK)
            n_good[k]++;
        assert_int_equal(cvy_loader_next(loader, &batch), CVY_ERR_DATA); /* and it stays */
        snprintf(message[k], sizeof message[k], "%s", cvy_error());
        cvy_loader_free(loader);
    }
    assert_non_null(strstr(message[0], "is rotten"));
    assert_string_equal(message[0], message[1]);
    assert_int_equal(n_good[0], n_good[1]);
}

static void labels_out_of_range_are_named(void **state) {
    (void)state;
    for (int workers = 0; workers < 3; workers += 2) {
        struct fake fake = make_fake(20);
        fake.bad_label = 7;
        cvy_loader *loader = make_loader(&fake.head, 20, workers);
        cvy_batch batch;
        assert_int_equal(cvy_loader_start(loader, 0), CVY_OK);
        assert_int_equal(cvy_loader_next(loader, &batch), CVY_ERR_DATA);
        assert_string_equal(cvy_error(), "'fake': image 7 has the label 12, outside of 0 to 9");
        cvy_loader_free(loader);
    }
}

static void files_are_named(void **state) {
    (void)state;
    static const char *const paths[] = {"tests/data/images/rgb.png", "tests/data/images/rgb.png.rgb",
                                        "tests/data/images/420.jpg"};
    for (int workers = 0; workers < 3; workers += 2) {
        cvy_dataset *dataset;
        cvy_loader_options options;
        cvy_loader *loader;
        cvy_batch batch;
        assert_int_equal(cvy_dataset_open_files(paths, 3, &dataset), CVY_OK);
        cvy_loader_defaults(&options);
        options.workers = workers;
        options.crop[0] = options.crop[1] = 12;
        options.batch_size = 1;
        assert_int_equal(cvy_loader_new(dataset, &options, &loader),
                         CVY_ERR_DATA); /* no labels to train on */
        options.augment = options.shuffle = false;
        assert_int_equal(cvy_loader_new(dataset, &options, &loader), CVY_OK);
        assert_int_equal(cvy_loader_start(loader, 0), CVY_OK);
        assert_int_equal(cvy_loader_next(loader, &batch), CVY_OK);
        assert_null(batch.labels);
        assert_true(batch.height == 12 && batch.width == 12 && batch.channels == 3);
        assert_float_equal(batch.mean[0], 0.485f, 0);
        assert_float_equal(batch.std[2], 0.225f, 0);
        assert_int_equal(cvy_loader_next(loader, &batch), CVY_ERR_DATA);
        assert_ptr_equal(strstr(cvy_error(), "tests/data/images/rgb.png.rgb: "), cvy_error());
        cvy_loader_free(loader);
        cvy_dataset_free(dataset);
    }
}

static void an_epoch_can_be_left(void **state) {
    (void)state;
    struct fake fake = make_fake(200);
    fake.max_delay_us = 100;
    for (int round = 0; round < 20; round++) {
        cvy_loader *loader = make_loader(&fake.head, 16, 4);
        cvy_batch batch;
        size_t n;
        if (round % 4) {
            assert_int_equal(cvy_loader_start(loader, 0), CVY_OK);
            for (int b = 0; b < round % 4; b++)
                assert_int_equal(cvy_loader_next(loader, &batch), CVY_OK);
        }
        if (round % 5 == 0)
            free(record(loader, 1, &n)); /* a new epoch, from its first batch */
        cvy_loader_free(loader);         /* with workers at work */
    }
    cvy_loader_free(NULL);
}

/* Every process reads its shards' images and no other; together they are the batches of one. */
static void shares_make_up_the_whole(void **state) {
    (void)state;
    enum { N = 103, BATCH = 16, S = 5 };
    static const int cuts[] = {0, 2, 2, 3, S}; /* four processes, one of them without a shard */
    struct fake fake = make_fake(N);
    int n_seen[N] = {0};
    for (int p = 0; p < 4; p++) {
        cvy_loader *loader = make_loader(&fake.head, BATCH, p % 2 ? 3 : 0);
        cvy_loader *all = make_loader(&fake.head, BATCH, 2);
        cvy_batch batch, whole;
        cvy_loader_set_share(loader, S, cuts[p], cuts[p + 1] - cuts[p]);
        assert_int_equal(cvy_loader_start(loader, 4), CVY_OK);
        assert_int_equal(cvy_loader_start(all, 4), CVY_OK);
        for (int64_t b = 0; b < (N + BATCH - 1) / BATCH; b++) {
            assert_int_equal(cvy_loader_next(loader, &batch), CVY_OK);
            assert_int_equal(cvy_loader_next(all, &whole), CVY_OK);
            assert_memory_equal(batch.labels, whole.labels, (size_t)batch.n * sizeof *batch.labels);
            assert_memory_equal(batch.indices, whole.indices, (size_t)batch.n * sizeof *batch.indices);
            int64_t begin = batch.n * cuts[p] / S, end = batch.n * cuts[p + 1] / S;
            size_t at = (size_t)begin * SIDE * SIDE, n = (size_t)(end - begin) * SIDE * SIDE;
            assert_memory_equal((const char *)batch.images + at, (const char *)whole.images + at, n);
            for (int64_t i = begin; i < end; i++)
                n_seen[batch.indices[i]]++;
        }
        assert_int_equal(cvy_loader_next(loader, &batch), CVY_END);
        cvy_loader_free(loader);
        cvy_loader_free(all);
    }
    assert_int_equal(atomic_load(&fake.n_reads), 5 * N); /* four times by `all` */
    for (int i = 0; i < N; i++)
        assert_int_equal(n_seen[i], 1);
}

static void bad_options_are_refused(void **state) {
    (void)state;
    struct fake fake = make_fake(20);
    cvy_loader_options good, bad;
    cvy_loader *loader = NULL;
    cvy_loader_defaults(&good);
    bad = good, bad.batch_size = 0;
    assert_int_equal(cvy_loader_new(&fake.head, &bad, &loader), CVY_ERR_USAGE);
    bad = good, bad.batch_size = 21;
    assert_int_equal(cvy_loader_new(&fake.head, &bad, &loader), CVY_ERR_USAGE);
    assert_string_equal(cvy_error(), "batch size 21 is larger than the 20 images of 'fake': say at most 20");
    bad = good, bad.batch_size = 20, bad.workers = -1;
    assert_int_equal(cvy_loader_new(&fake.head, &bad, &loader), CVY_ERR_USAGE);
    assert_null(loader);
    loader = make_loader(&fake.head, 20, 0);
    assert_int_equal(cvy_loader_start(loader, -1), CVY_ERR_USAGE);
    cvy_loader_free(loader);
}

/* Images of another side from the next epoch on, by any workers the same; then again as if nothing had been. */
static void images_of_other_sides(void **state) {
    (void)state;
    struct fake fake = make_fake(30);
    size_t n[2][3];
    uint8_t *bytes[2][3];
    for (int k = 0; k < 2; k++) {
        static const int64_t sides[3] = {3, 4, SIDE};
        cvy_loader *loader = make_loader(&fake.head, 8, k ? 3 : 0);
        cvy_batch batch;
        for (int e = 0; e < 3; e++) {
            assert_int_equal(cvy_loader_resize(loader, sides[e]), CVY_OK);
            bytes[k][e] = record(loader, 1, &n[k][e]);
            assert_int_equal(n[k][e], 30 * (sides[e] * sides[e] + 16));
        }
        assert_int_equal(cvy_loader_start(loader, 0), CVY_OK);
        assert_int_equal(cvy_loader_next(loader, &batch), CVY_OK);
        assert_int_equal(cvy_loader_resize(loader, 2), CVY_OK); /* this epoch stays as it is */
        while (cvy_loader_next(loader, &batch) == CVY_OK)
            assert_int_equal(batch.height, SIDE);
        assert_int_equal(cvy_loader_resize(loader, SIDE + 1), CVY_ERR_USAGE);
        assert_int_equal(cvy_loader_resize(loader, 0), CVY_ERR_USAGE);
        cvy_loader_free(loader);
    }
    cvy_loader *never_resized = make_loader(&fake.head, 8, 2);
    size_t n_plain;
    uint8_t *plain = record(never_resized, 1, &n_plain);
    assert_int_equal(n_plain, n[0][2]);
    assert_memory_equal(plain, bytes[0][2], n_plain);
    for (int e = 0; e < 3; e++) {
        assert_memory_equal(bytes[0][e], bytes[1][e], n[0][e]);
        free(bytes[0][e]);
        free(bytes[1][e]);
    }
    free(plain);
    cvy_loader_free(never_resized);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_do_not_change_the_batches),
        cmocka_unit_test(repeated_samples_are_augmented_anew),
        cmocka_unit_test(an_epoch_is_a_function_of_its_number),
        cmocka_unit_test(each_sample_comes_once),
        cmocka_unit_test(without_shuffle_samples_come_as_they_lie),
        cmocka_unit_test(a_batch_stays_until_the_next_call),
        cmocka_unit_test(errors_come_in_order),
        cmocka_unit_test(labels_out_of_range_are_named),
        cmocka_unit_test(files_are_named),
        cmocka_unit_test(an_epoch_can_be_left),
        cmocka_unit_test(shares_make_up_the_whole),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(images_of_other_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

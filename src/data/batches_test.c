/* The batches of two epochs, all random transforms on, as one hash: the same from folder:, tar: and csv:, for any
   number of workers and of processes, and when an epoch is left in its middle and gone on with later. */
#include "data/data_fixture.h"
#include "data/loader.h"
#include "data/pack.h"
#include "data/scan.h"

#include "base/text.h"

#include <xxhash.h>

enum { BATCH = 5, N_SHARDS = 4, MAX_RANKS = 4, N_EPOCHS = 2, SIDE = 12, ALL = 1 << 20 };

/* ---- the same files three times -------------------------------------------------------------------------- */

static char specs[3][512];

/* Every class has its own share of the images. */
static void put_images(const struct cvy_names *names, const char *split, struct cvy_text *rows) {
    static const char *const classes[] = {"ant", "bee"};
    for (size_t i = 0; i < names->names.n; i++) {
        char from[256], to[128], path[256];
        char *bytes;
        size_t n_bytes;
        snprintf(from, sizeof from, "tests/data/images/%s", names->names.data[i]);
        snprintf(to, sizeof to, "set/%s/%s/%s", split, classes[i % 2], names->names.data[i]);
        snprintf(path, sizeof path, "%s/set/%s/%s", root, split, classes[i % 2]);
        (void)mkdir(path, 0777);
        assert_int_equal(cvy_read_file(from, 1 << 20, &bytes, &n_bytes), CVY_OK);
        put(to, bytes, n_bytes);
        free(bytes);
    }
    for (size_t i = 0; i < 2 * names->names.n; i++) { /* as folder: sorts them: one class after the other */
        size_t at = i % names->names.n, class = i / names->names.n;
        if (at % 2 == class)
            cvy_text_printf(rows, "set/%s/%s/%s,%s,%s\n", split, classes[class], names->names.data[at],
                            classes[class], split);
    }
}

static void make_folder(void) {
    struct cvy_pool pool = {0};
    struct cvy_listing listing;
    struct cvy_text rows = {0};
    char path[128];
    assert_int_equal(cvy_scan_folder("tests/data/images", &pool, &listing), CVY_OK);
    qsort(listing.files.names.data, listing.files.names.n, sizeof *listing.files.names.data,
          cvy_compare_names);
    assert_true(listing.files.names.n > 3 * BATCH);
    cvy_text_printf(&rows, "path,label,split\n");
    for (int i = 0; i < 3; i++) {
        static const char *const folders[] = {"set", "set/train", "set/val"};
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0777), 0);
        if (i > 0)
            put_images(&listing.files, folders[i] + strlen("set/"), &rows);
    }
    put("list.csv", rows.data, rows.n);
    cvy_text_free(&rows);
    cvy_listing_free(&listing);
    cvy_pool_free(&pool);
}

static int make_views(void **state) {
    char prefix[128];
    if (make_root(state) != 0)
        return -1;
    make_folder();
    struct cvy_dataset *train = open_ok_below("folder", "set", CVY_SPLIT_TRAIN),
                       *val = open_ok_below("folder", "set", CVY_SPLIT_VAL);
    snprintf(prefix, sizeof prefix, "%s/packed", root);
    struct cvy_pack pack = {.prefix = prefix, .shard_bytes = 10000, .n_workers = 3};
    assert_int_equal(cvy_pack_write(train, val, &pack), CVY_OK);
    assert_true(pack.n_shards > 2);
    cvy_dataset_free(train);
    cvy_dataset_free(val);
    snprintf(specs[0], sizeof specs[0], "folder:%s/set", root);
    snprintf(specs[1], sizeof specs[1], "tar:%s-train-*.tar,val=%s-val-*.tar", prefix, prefix);
    snprintf(specs[2], sizeof specs[2], "csv:%s/list.csv", root);
    return 0;
}

/* ---- a run ----------------------------------------------------------------------------------------------- */

struct run {
    const char *spec;
    int workers, n_ranks;
    const char *preset;
    int64_t accumulate, n_times;
    int64_t left_after; /* updates of each epoch: then other loaders go on */
};

static cvy_loader *open_loader(const struct run *run, const struct cvy_dataset *dataset, int rank) {
    cvy_loader_options options;
    cvy_loader *loader;
    const int64_t first = N_SHARDS * rank / run->n_ranks, end = N_SHARDS * (rank + 1) / run->n_ranks;
    cvy_loader_defaults(&options);
    options.batch_size = BATCH;
    options.accumulate = run->accumulate;
    options.workers = run->workers;
    options.seed = 11;
    options.preset = run->preset;
    options.crop[0] = options.crop[1] = SIDE;
    options.flip = 1;
    options.color_jitter[0] = options.color_jitter[1] = options.color_jitter[2] = 0.4F;
    options.color_jitter[3] = 0.1F;
    options.auto_augment = "ra";
    options.random_erase = 0.5;
    if (cvy_loader_new(dataset, &options, &loader) != CVY_OK)
        fail_msg("%s", cvy_error());
    cvy_loader_set_share(loader, N_SHARDS, first, end - first);
    assert_int_equal(cvy_loader_repeat(loader, run->n_times), CVY_OK);
    return loader;
}

/* All ranks' next batches, as the batch that their shares make up. False: the epoch is at its end. */
static bool hash_batch(const struct run *run, cvy_loader **loaders, XXH3_state_t *hash) {
    cvy_batch batches[MAX_RANKS] = {{.n = 0}};
    for (int rank = 0; rank < run->n_ranks; rank++) {
        cvy_status status = cvy_loader_next(loaders[rank], &batches[rank]);
        if (status == CVY_END)
            return false;
        if (status != CVY_OK)
            fail_msg("%s", cvy_error());
    }
    const int64_t n = batches[0].n;
    const size_t n_image = (size_t)(batches[0].channels * batches[0].height * batches[0].width);
    for (int rank = 0; rank < run->n_ranks; rank++) {
        const cvy_batch *batch = &batches[rank];
        const int64_t first = n * (N_SHARDS * rank / run->n_ranks) / N_SHARDS,
                      end = n * (N_SHARDS * (rank + 1) / run->n_ranks) / N_SHARDS;
        assert_true(batch->n == n && batch->n_update == batches[0].n_update);
        assert_memory_equal(batch->labels, batches[0].labels, (size_t)n * sizeof *batch->labels);
        assert_memory_equal(batch->indices, batches[0].indices, (size_t)n * sizeof *batch->indices);
        XXH3_64bits_update(hash, (const char *)batch->images + (size_t)first * n_image,
                           (size_t)(end - first) * n_image);
    }
    XXH3_64bits_update(hash, batches[0].labels, (size_t)n * sizeof *batches[0].labels);
    XXH3_64bits_update(hash, batches[0].indices, (size_t)n * sizeof *batches[0].indices);
    XXH3_64bits_update(hash, &batches[0].n_update, sizeof batches[0].n_update);
    return true;
}

/* One epoch, from this update on, until `most` updates are done or its end. */
static void hash_part(const struct run *run, const struct cvy_dataset *dataset, int64_t epoch, int64_t first,
                      int64_t most, XXH3_state_t *hash) {
    cvy_loader *loaders[MAX_RANKS];
    for (int rank = 0; rank < run->n_ranks; rank++) {
        loaders[rank] = open_loader(run, dataset, rank);
        assert_int_equal(cvy_loader_start_at(loaders[rank], epoch, first), CVY_OK);
    }
    for (int64_t n = 0; n < most * run->accumulate && hash_batch(run, loaders, hash);)
        n++;
    for (int rank = 0; rank < run->n_ranks; rank++)
        cvy_loader_free(loaders[rank]);
}

static uint64_t hash_run(const struct run *run) {
    struct cvy_dataset *dataset;
    XXH3_state_t *hash = XXH3_createState();
    XXH3_64bits_reset(hash);
    if (cvy_dataset_open(run->spec, CVY_SPLIT_TRAIN, NULL, &dataset) != CVY_OK)
        fail_msg("%s", cvy_error());
    for (int64_t epoch = 0; epoch < N_EPOCHS; epoch++) {
        if (run->left_after > 0)
            hash_part(run, dataset, epoch, 0, run->left_after, hash);
        hash_part(run, dataset, epoch, run->left_after, ALL, hash);
    }
    cvy_dataset_free(dataset);
    uint64_t digest = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    return digest;
}

/* ---- the tests ------------------------------------------------------------------------------------------- */

static const struct run plain = {
    .workers = 0, .n_ranks = 1, .preset = "imagenet", .accumulate = 1, .n_times = 1};

static void expect_hash(const struct run *run, uint64_t want) {
    uint64_t found = hash_run(run);
    if (found != want)
        fail_msg("%s, %d workers, %d ranks, accumulate %lld, left after %lld: %016llx is not %016llx",
                 run->spec, run->workers, run->n_ranks, (long long)run->accumulate,
                 (long long)run->left_after, (unsigned long long)found, (unsigned long long)want);
}

static void views_workers_and_ranks_do_not_count(void **state) {
    (void)state;
    static const int workers[] = {0, 1, 2, 7}, ranks[] = {1, 2, 4};
    static const char *const presets[] = {"imagenet", "cifar"};
    uint64_t want[2];
    for (int p = 0; p < 2; p++) {
        struct run run = plain;
        run.spec = specs[0];
        run.preset = presets[p];
        want[p] = hash_run(&run);
        for (int v = 0; v < 3; v++) {
            for (int w = 0; w < 4; w++) {
                for (int r = 0; r < 3; r++) {
                    run.spec = specs[v];
                    run.workers = workers[w];
                    run.n_ranks = ranks[r];
                    expect_hash(&run, want[p]);
                }
            }
        }
    }
    assert_true(want[0] != want[1]);
}

static void an_epoch_goes_on_where_it_was_left(void **state) {
    (void)state;
    static const int workers[] = {0, 3};
    for (int64_t accumulate = 1; accumulate <= 2; accumulate++) {
        for (int64_t n_times = 1; n_times <= 3; n_times += 2) {
            struct run run = plain;
            run.spec = specs[0];
            run.accumulate = accumulate;
            run.n_times = n_times;
            const uint64_t want = hash_run(&run);
            for (run.left_after = 1; run.left_after * accumulate <= 4; run.left_after++) {
                for (int w = 0; w < 2; w++) {
                    run.workers = workers[w];
                    run.n_ranks = 1 + w;
                    expect_hash(&run, want);
                }
            }
        }
    }
}

/* A hash that would not see what it is told to see. */
static void other_choices_are_other_batches(void **state) {
    (void)state;
    struct run run = plain;
    run.spec = specs[0];
    const uint64_t first = hash_run(&run);
    run.n_times = 2;
    assert_true(hash_run(&run) != first);
    run.n_times = 1;
    run.accumulate = 2;
    assert_true(hash_run(&run) != first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_workers_and_ranks_do_not_count),
        cmocka_unit_test(an_epoch_goes_on_where_it_was_left),
        cmocka_unit_test(other_choices_are_other_batches),
    };
    return cmocka_run_group_tests(tests, make_views, remove_root);
}

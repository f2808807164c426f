/* Copies between the CUDA plugin's devices and the host, through its rings of pinned memory: any number of bytes and of
   copies, and the host's memory is free again when a call returns. */
#include "rt/backend.h"

#include "cuda/cuda_orders.h"

enum {
    BIG = (20 << 20) + 12, /* more than a ring holds */
    MANY = 1000,           /* more than it has pieces, ... */
    EACH = 5000,           /* ... and of so many numbers that they go round */
    SIDE = 32,
    IMAGE = 3 * SIDE * SIDE,
    N_IMAGES = 4,
    N_SHARDS = 5, /* more than there are places for images */
};

static struct cvy_device *open_device(void) {
    const struct cvy_backend *backend;
    struct cvy_device *device;
    const struct cvy_device_spec spec = {.n_local = 1};
    assert_ok(cvy_backend_load("cuda", &backend));
    assert_ok(backend->open(&spec, &device));
    assert_ok(backend->enter(device));
    return device;
}

static void *alloc(struct cvy_device *device, size_t n_bytes) {
    void *memory;
    double touch_s;
    assert_ok(device->backend->alloc(device, n_bytes, &memory, &touch_s));
    return memory;
}

/* ---- plain bytes ---------------------------------------------------------------------------------------------- */

static void test_many_bytes(void **state) {
    (void)state;
    struct cvy_device *device = open_device();
    const struct cvy_backend *b = device->backend;
    uint32_t *sent = malloc(BIG), *got = malloc(BIG);
    char *at = alloc(device, BIG);
    assert_non_null(sent);
    assert_non_null(got);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < BIG / 4; i++)
            sent[i] = i * 2654435761u + round;
        assert_ok(b->upload(device, at, sent, BIG));
        memset(got, 0, BIG);
        assert_ok(b->download(device, got, at, BIG));
        assert_memory_equal(got, sent, BIG);
        assert_ok(b->upload(device, at, sent, BIG)); /* after this one, odd places in the ring */
        memset(sent, 0, BIG);
        assert_ok(b->download(device, (char *)sent + 3, at + 3, BIG - 3));
        memcpy(sent, got, 3);
        assert_memory_equal(sent, got, BIG);
        assert_ok(b->streams->synchronize(device));
    }
    b->release(device, at, BIG);
    b->close(device);
    free(sent);
    free(got);
}

static void test_many_copies(void **state) {
    (void)state;
    struct cvy_device *device = open_device();
    const struct cvy_backend *b = device->backend;
    static int sent[EACH], got[MANY * EACH];
    int *at = alloc(device, sizeof got);
    for (int k = 0; k < MANY; k++) {
        for (int i = 0; i < EACH; i++)
            sent[i] = k * EACH + i;
        assert_ok(b->upload(device, at + (size_t)k * EACH, sent, sizeof sent));
    }
    assert_ok(b->download(device, got, at, sizeof got));
    for (int i = 0; i < MANY * EACH; i++)
        assert_true(got[i] == i);
    b->release(device, at, sizeof got);
    b->close(device);
}

/* ---- images ----------------------------------------------------------------------------------------------------- */

static void test_shard_after_shard(void **state) {
    (void)state;
    static float images[N_IMAGES * IMAGE], got[N_SHARDS * N_IMAGES * IMAGE];
    struct cvy_device *device = open_device();
    const struct cvy_backend *b = device->backend;
    const cvy_batch batch = {.n = N_IMAGES,
                             .channels = 3,
                             .height = SIDE,
                             .width = SIDE,
                             .dtype = CVY_F32,
                             .order = CVY_NCHW,
                             .images = images,
                             .std = {1, 1, 1}};
    float *at = alloc(device, sizeof got);
    for (int k = 0; k < N_SHARDS; k++) {
        const int n = k == 0 ? 1 : N_IMAGES; /* the first one needs less memory than those behind it */
        const struct cvy_operand_spec spec = {.desc = {CVY_F32, CVY_SHAPE(n, 3, SIDE, SIDE)}};
        for (int i = 0; i < n * IMAGE; i++)
            images[i] = (float)(i + k);
        assert_ok(
            b->ingest(device, &(struct cvy_ingest){&batch, 0, n}, &spec, at + (size_t)k * N_IMAGES * IMAGE));
        memset(images, 0, sizeof images);
    }
    assert_ok(b->download(device, got, at, sizeof got));
    for (int i = 0; i < (int)(sizeof got / sizeof *got); i++) {
        const int k = i / (N_IMAGES * IMAGE), of = i % (N_IMAGES * IMAGE);
        if (k > 0 || of < IMAGE)
            assert_true(got[i] == (float)(of + k));
    }
    b->release(device, at, sizeof got);
    b->close(device);
}

/* ---- orders ----------------------------------------------------------------------------------------------------- */

static int choose(void **state) {
    choose_order(*(const int *)*state, true);
    return 0;
}

static int reset(void **state) {
    (void)state;
    reset_order();
    return 0;
}

int main(void) {
    static int seeds[N_ORDERS];
    struct CMUnitTest tests[3 * N_ORDERS];
    int n = 0;
    for (int k = 0; k < N_ORDERS; k++) {
        seeds[k] = k;
        tests[n++] = (struct CMUnitTest){"bytes", test_many_bytes, choose, reset, &seeds[k]};
        tests[n++] = (struct CMUnitTest){"copies", test_many_copies, choose, reset, &seeds[k]};
        tests[n++] = (struct CMUnitTest){"shards", test_shard_after_shard, choose, reset, &seeds[k]};
    }
    return has_plugin() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

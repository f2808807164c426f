/* What every backend must do, on the CPU, reference and async backends: plain bytes, sums, ingest, and the check
   itself, which must also notice a kernel that is wrong. */
#include "base/thread.h"
#include "rt/check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3, C = 3, H = 5, W = 7, PIXELS = H * W, COUNT = N * C * PIXELS };

static struct cvy_device *open_device(const char *name) {
    struct cvy_device *device;
    struct cvy_device_spec spec = {.n_threads = 1, .n_local = 1};
    const struct cvy_backend *backend = cvy_backend_find(name);
    assert_non_null(backend);
    assert_int_equal(backend->open(&spec, &device), CVY_OK);
    assert_int_equal(backend->enter(device), CVY_OK);
    return device;
}

static void *alloc(struct cvy_device *device, size_t n_bytes) {
    void *memory;
    double touch_s;
    assert_int_equal(device->backend->alloc(device, n_bytes, &memory, &touch_s), CVY_OK);
    assert_int_equal((uintptr_t)memory % 64, 0);
    return memory;
}

static void bytes_and_sums(const char *name) {
    struct cvy_device *device = open_device(name);
    const struct cvy_backend *b = device->backend;
    enum { LENGTH = 5000 };
    size_t n_bytes = LENGTH * sizeof(float);
    float *host = malloc(n_bytes), *back = malloc(n_bytes);
    float *x = alloc(device, n_bytes), *y = alloc(device, n_bytes);
    for (int i = 0; i < LENGTH; i++)
        host[i] = (float)i;
    assert_int_equal(b->download(device, back, x, n_bytes), CVY_OK);
    for (int i = 0; i < LENGTH; i++)
        assert_true(back[i] == 0); /* alloc gives zeros */
    assert_int_equal(b->upload(device, x, host, n_bytes), CVY_OK);
    assert_int_equal(b->upload(device, y, host, n_bytes), CVY_OK);
    assert_int_equal(b->add(device, y, y, x, LENGTH), CVY_OK);
    assert_int_equal(b->download(device, back, y, n_bytes), CVY_OK);
    for (int i = 0; i < LENGTH; i++)
        assert_true(back[i] == 2 * host[i]);
    assert_int_equal(b->zero(device, y, n_bytes), CVY_OK);
    assert_int_equal(b->download(device, back, y, n_bytes), CVY_OK);
    for (int i = 0; i < LENGTH; i++)
        assert_true(back[i] == 0);
    b->release(device, x, n_bytes);
    b->release(device, y, n_bytes);
    free(host);
    free(back);
    b->close(device);
}

static void all_bytes_and_sums(void **state) {
    (void)state;
    bytes_and_sums("reference");
    bytes_and_sums("cpu");
    bytes_and_sums("async");
}

/* Images 1 and 2 of a batch of 3, ingested in a layout and read back through a reorder. */
static void ingest_in(const char *name, const char *layout_name, cvy_dtype dtype, cvy_image_order order) {
    struct cvy_device *device = open_device(name);
    const struct cvy_backend *b = device->backend;
    cvy_batch batch = {.n = N,
                       .channels = C,
                       .height = H,
                       .width = W,
                       .dtype = dtype,
                       .order = order,
                       .mean = {0.1f, 0.2f, 0.3f},
                       .std = {0.5f, 0.25f, 2}};
    uint8_t u8[COUNT];
    float f32[COUNT], result[COUNT];
    const struct cvy_layout *layout;
    for (int i = 0; i < COUNT; i++)
        f32[i] = u8[i] = (uint8_t)(i * 37 % 256);
    batch.images = dtype == CVY_U8 ? (void *)u8 : f32;
    assert_true(b->layout_find(device, layout_name, &layout));
    struct cvy_operand_spec spec = {.desc = {CVY_F32, CVY_SHAPE(N - 1, C, H, W)}, .layout = layout},
                            plain = spec;
    size_t n_bytes = b->layout_bytes(layout, &spec.desc), plain_bytes = b->layout_bytes(NULL, &spec.desc);
    void *at = alloc(device, n_bytes), *out = alloc(device, plain_bytes);
    assert_int_equal(b->ingest(device, &(struct cvy_ingest){&batch, 1, N - 1}, &spec, at), CVY_OK);

    plain.layout = NULL;
    struct cvy_call call = {.op = cvy_op_find("reorder"), .n_in = 1, .n_out = 1, .in = &spec, .out = &plain};
    const struct cvy_kernel_impl *reorder = cvy_kernel_select(device, &call, NULL);
    struct cvy_kernel *kernel;
    size_t scratch_bytes;
    assert_int_equal(reorder->prepare(device, &call, &kernel, &scratch_bytes), CVY_OK);
    void *scratch = alloc(device, scratch_bytes);
    assert_int_equal(reorder->run(kernel, &at, &out, scratch), CVY_OK);
    assert_int_equal(b->download(device, result, out, plain_bytes), CVY_OK);
    for (int i = 0; i < (N - 1) * C * PIXELS; i++) {
        int n = i / (C * PIXELS) + 1, c = i / PIXELS % C, p = i % PIXELS;
        float x = f32[order == CVY_NHWC ? (n * PIXELS + p) * C + c : (n * C + c) * PIXELS + p];
        float expected = ((dtype == CVY_U8 ? x / 255 : x) - batch.mean[c]) / batch.std[c];
        assert_true(fabsf(result[i] - expected) <= 1e-6f * fabsf(expected) + 1e-6f);
    }
    reorder->release(kernel);
    b->release(device, scratch, scratch_bytes);
    b->release(device, at, n_bytes);
    b->release(device, out, plain_bytes);
    b->close(device);
}

static void all_ingest(void **state) {
    static const char *const cpu_layouts[] = {"plain", "aBcd16b", "aBcd8b", "acdb"};
    (void)state;
    for (int k = 0; k < 4; k++) {
        cvy_dtype dtype = k % 2 ? CVY_U8 : CVY_F32;
        cvy_image_order order = k / 2 ? CVY_NHWC : CVY_NCHW;
        ingest_in("reference", "plain", dtype, order);
        for (size_t l = 0; l < sizeof cpu_layouts / sizeof *cpu_layouts; l++) {
            ingest_in("cpu", cpu_layouts[l], dtype, order);
            ingest_in("async", cpu_layouts[l], dtype, order);
        }
    }
}

/* Images of another shape are refused, with the shape in the message. */
static void wrong_images(void **state) {
    (void)state;
    struct cvy_device *device = open_device("cpu");
    cvy_batch batch = {.n = 1, .channels = 3, .height = 4, .width = 4};
    struct cvy_operand_spec spec = {.desc = {CVY_F32, CVY_SHAPE(1, 1, 4, 4)}};
    assert_int_equal(device->backend->ingest(device, &(struct cvy_ingest){&batch, 0, 1}, &spec, NULL),
                     CVY_ERR_USAGE);
    assert_non_null(strstr(cvy_error(), "3x4x4"));
    device->backend->close(device);
}

static void reference_passes(void **state) {
    struct cvy_device *device = open_device("reference");
    struct cvy_check_table table;
    (void)state;
    assert_int_equal(cvy_check_run(device, &(struct cvy_check_what){.seed = (uint64_t)cvy_now_ns()}, &table),
                     CVY_OK);
    assert_true(table.results.n > 0);
    assert_int_equal(table.n_failed, 0);
    cvy_check_free(&table);
    device->backend->close(device);
}

/* The backend that wraps the CPU's kernels has their bits. */
static void async_equals_cpu(void **state) {
    (void)state;
    struct cvy_device *cpu = open_device("cpu"), *async = open_device("async");
    struct cvy_check_table a, b;
    assert_int_equal(cvy_check_run(cpu, &(struct cvy_check_what){.seed = 5}, &a), CVY_OK);
    assert_int_equal(cvy_check_run(async, &(struct cvy_check_what){.seed = 5}, &b), CVY_OK);
    assert_int_equal(a.results.n, b.results.n);
    for (size_t i = 0; i < a.results.n; i++)
        assert_int_equal(a.results.data[i].is_fallback, b.results.data[i].is_fallback);
    assert_int_equal(b.n_failed, 0);
    assert_int_equal(a.bits, b.bits);
    cvy_check_free(&a);
    cvy_check_free(&b);
    cpu->backend->close(cpu);
    async->backend->close(async);
}

/* ---- a backend with a wrong kernel --------------------------------------------------------------- */

static const struct cvy_kernel_impl lazy;

static cvy_status lazy_prepare(struct cvy_device *device, const struct cvy_call *call,
                               struct cvy_kernel **out, size_t *scratch_bytes) {
    (void)device, (void)call;
    *scratch_bytes = 0;
    *out = calloc(1, sizeof **out);
    if (!*out)
        return CVY_ERR_MEMORY;
    (*out)->impl = &lazy;
    return CVY_OK;
}

static cvy_status lazy_run(struct cvy_kernel *kernel, void *const *in, void *const *out, void *scratch) {
    (void)kernel, (void)in, (void)out, (void)scratch; /* writes nothing: the poison stays */
    return CVY_OK;
}

static void lazy_release(struct cvy_kernel *kernel) { free(kernel); }

static const struct cvy_kernel_impl lazy = {
    .op = "relu", .prepare = lazy_prepare, .run = lazy_run, .release = lazy_release};

static void check_notices(void **state) {
    static const struct cvy_kernel_impl *const kernels[] = {&lazy, NULL};
    struct cvy_device *device = open_device("reference");
    struct cvy_backend broken = *device->backend;
    struct cvy_check_table table;
    (void)state;
    broken.kernels = kernels;
    device->backend = &broken;
    assert_int_equal(cvy_check_run(device, &(struct cvy_check_what){.seed = 1, .only = "relu"}, &table),
                     CVY_OK);
    assert_true(table.results.n > 0);
    assert_int_equal(table.n_failed, table.results.n);
    assert_false(table.results.data[0].is_fallback);
    assert_true(isnan(table.results.data[0].error));
    cvy_check_free(&table);
    device->backend->close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_bytes_and_sums), cmocka_unit_test(all_ingest),
        cmocka_unit_test(wrong_images),       cmocka_unit_test(reference_passes),
        cmocka_unit_test(async_equals_cpu),   cmocka_unit_test(check_notices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

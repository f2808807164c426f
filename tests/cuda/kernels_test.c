/* The CUDA plugin's kernels against the operators' references: the operators' own cases from both layouts, and larger
   ones, whose sums are cut into chunks that blocks share. */
#include "base/thread.h"
#include "ops/cases.h"
#include "ops/infer.h"
#include "ops/optimizer.h"
#include "rt/check_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include <cmocka.h>

static struct cvy_device *open_device(int index) {
    const struct cvy_backend *backend;
    struct cvy_device *device;
    const struct cvy_device_spec spec = {.index = index, .n_local = 1};
    assert_int_equal(cvy_backend_load("cuda", &backend), CVY_OK);
    assert_int_equal(backend->open(&spec, &device), CVY_OK);
    assert_int_equal(backend->enter(device), CVY_OK);
    return device;
}

static void close_device(struct cvy_device *device) { device->backend->close(device); }

/* ---- the operators' cases --------------------------------------------------------------------------------- */

/* Returns the hash of all results. */
static uint64_t run_all(int index, uint64_t seed, const char *layout) {
    struct cvy_device *device = open_device(index);
    struct cvy_check_table table;
    if (cvy_check_run(device, &(struct cvy_check_what){.seed = seed, .layout = layout}, &table) != CVY_OK)
        fail_msg("%s", cvy_error());
    for (size_t i = 0; i < table.results.n; i++) {
        const struct cvy_check_result *r = &table.results.data[i];
        if (!r->has_passed || r->is_fallback)
            print_error("%s, case %d (%s), from %s: error %g, allowed %g %s\n", r->op->name, r->case_index,
                        r->op->cases[r->case_index].attrs, layout ? layout : "plain", r->error, r->tolerance,
                        r->is_fallback ? "(no kernel)" : r->reason);
        assert_false(r->is_fallback);
    }
    assert_true(table.results.n > 150);
    assert_int_equal(table.n_failed, 0);
    uint64_t bits = table.bits;
    cvy_check_free(&table);
    close_device(device);
    return bits;
}

static void from_plain(void **state) {
    (void)state;
    run_all(0, (uint64_t)cvy_now_ns(), NULL);
}

static void from_nhwc(void **state) {
    (void)state;
    run_all(0, (uint64_t)cvy_now_ns(), "nhwc");
}

static void same_bits_everywhere(void **state) {
    const uint64_t seed = (uint64_t)cvy_now_ns();
    (void)state;
    assert_true(run_all(0, seed, "nhwc") == run_all(1, seed, "nhwc"));
    assert_true(run_all(0, seed, NULL) != run_all(0, seed + 1, NULL)); /* the hash sees the results */
}

/* ---- larger ones ------------------------------------------------------------------------------------------ */

static void run_case(const char *op, const struct cvy_case *test, const char *layout) {
    struct cvy_device *device = open_device(0);
    struct cvy_check_result result = {.op = cvy_op_find(op),
                                      .tolerance = test->tolerance > 0 ? test->tolerance : 1e-5};
    const struct cvy_layout *start = NULL;
    XXH3_state_t *hash = XXH3_createState();
    assert_non_null(hash);
    XXH3_64bits_reset(hash);
    assert_true(!layout || device->backend->layout_find(device, layout, &start));
    if (cvy_check_case(device, test, (uint64_t)cvy_now_ns(), start, hash, &result) != CVY_OK)
        fail_msg("%s: %s", op, cvy_error());
    if (!result.has_passed)
        fail_msg("%s (%s), %s, from %s: error %g", op, test->attrs, test->inputs, layout ? layout : "plain",
                 result.error);
    XXH3_freeState(hash);
    close_device(device);
}

/* Inputs as the operator's own cases have them. */
static void run_like_own(const char *op, const char *attrs, const char *inputs) {
    struct cvy_case test = cvy_op_find(op)->cases[0];
    test.attrs = attrs;
    test.inputs = inputs;
    run_case(op, &test, NULL);
    run_case(op, &test, "nhwc");
}

#define FOUR(c) " f32[" #c "] f32[" #c "] f32[" #c "] f32[" #c "]"
#define THREE(c) " f32[" #c "] f32[" #c "] f32[" #c "]"

static void rows_of_many_chunks(void **state) {
    (void)state;
    run_like_own("batch_norm", "relu=true", "f32[5,3,57,61]" FOUR(3) " f32[5,3,57,61]");
    run_like_own("batch_norm", "", "f32[7,70,29,31]" FOUR(70) " -");
    run_like_own("batch_norm_backward", "relu=true",
                 "f32[5,33,57,61] f32[5,33,57,61]" THREE(33) " u8[5,33,57,61]");
    run_like_own("batch_norm_backward", "", "f32[3000,5] f32[3000,5]" THREE(5) " -");
    run_like_own("batch_norm_moments", "", "f32[3,65,57,61]");
    run_like_own("batch_norm_backward_sums", "", "f32[5,33,57,61] f32[5,33,57,61] f32[33] f32[33] -");
    run_like_own("layer_norm", "eps=1e-6", "f32[3,65,17,61] f32[65] f32[65]");
    run_like_own("layer_norm_backward", "",
                 "f32[5,33,57,61] f32[5,33,57,61] f32[33] f32[5,57,61] f32[5,57,61]");
    run_like_own("channel_sum", "axis=1", "f32[5,33,57,61]");
    run_like_own("mean", "", "f32[3,17,57,61]");
    run_like_own("mul_backward", "", "f32[3,17,97,61] f32[3,17,97,61]");
    run_like_own("mul_backward", "per_image=false", "f32[5,33,57,61] f32[5,33,57,61]");
    run_like_own("batch_mean", "", "f32[9001] f32[1]");
    run_like_own("cross_entropy", "label_smoothing=0.1", "f32[4100,11] i64[4100] f32[1]");
    run_like_own("soft_cross_entropy", "label_smoothing=0.1", "f32[4100,11] f32[4100,11] f32[1]");
    run_like_own("accuracy", "", "f32[4100,11] i64[4100]");
}

/* Deviation 1 around 1000: a sum of squares would lose the variance; float means cost an input's rounding. */
static void fill_far(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    if (i != 0) {
        cvy_fill_uniform(i, desc, seed, 0.5, 2, values);
        return;
    }
    cvy_fill_normal(i, desc, seed, values);
    for (int64_t k = 0; k < cvy_shape_count(&desc->shape); k++)
        values[k] += 1000;
}

static void far_from_zero(void **state) {
    const struct cvy_case test = {"", "f32[5,3,57,61]" FOUR(3) " -", 1e-4, fill_far};
    (void)state;
    run_case("batch_norm", &test, NULL);
    run_case("batch_norm", &test, "nhwc");
}

static void fill_positive(int i, const struct cvy_desc *desc, uint64_t seed, double *values) {
    cvy_fill_uniform(i, desc, seed, 0.5, 2, values);
}

/* Operands of 16 bits: inputs are drawn as float, so that their rounding is part of the error. */
static void run_half(const char *op, const char *attrs, const char *inputs) {
    struct cvy_case test = cvy_op_find(op)->cases[0];
    struct cvy_text text = {0};
    for (int t = 0; t < 2; t++) {
        const char *type = t ? "f16" : "bf16";
        for (const char *c = inputs; *c; c++) /* h stands for the type */
            cvy_text_printf(&text, "%.*s", *c == 'h' ? 4 : 1, *c == 'h' ? type : c);
        assert_int_equal(text.status, CVY_OK);
        if (strcmp(op, "mean") == 0) /* one near 0 would be nothing but rounding */
            test.fill = fill_positive;
        test.attrs = attrs;
        test.inputs = text.data;
        test.tolerance = t ? 1e-3 : 1e-2; /* of roundings of 2^-11 and 2^-8 */
        run_case(op, &test, NULL);
        run_case(op, &test, "nhwc");
        cvy_text_free(&text);
        text = (struct cvy_text){0};
    }
}

static void of_16_bits(void **state) {
    (void)state;
    run_half("relu", "", "h[3,17,5,7]");
    run_half("relu_backward", "", "h[3,17,5,7] h[3,17,5,7]");
    run_half("add", "", "h[3,17,5,7] h[3,17,5,7]");
    run_half("mul", "", "h[3,17,5,7] h[3,17,1,1]");
    run_half("mul", "", "h[3,17,5,7] f32[17,1,1]");
    run_half("mul_backward", "", "h[3,17,5,7] h[3,17,5,7]");
    run_half("mul_backward", "per_image=false", "h[3,17,5,7] h[3,17,5,7]");
    run_half("concat", "", "h[3,17,5,7] h[3,2,5,7] h[3,4,5,7]");
    run_half("channel_slice", "first=3 count=9", "h[3,17,5,7]");
    run_half("channel_slice_backward", "first=3 count=9 channels=17", "h[3,9,5,7]");
    run_half("channel_shuffle", "groups=3", "h[3,18,5,7]");
    run_half("hardswish", "", "h[3,17,5,7]");
    run_half("hardswish_backward", "", "h[3,17,5,7] h[3,17,5,7]");
    run_half("gelu", "", "h[3,17,5,7]");
    run_half("gelu_backward", "", "h[3,17,5,7] h[3,17,5,7]");
    run_half("reorder", "", "h[3,17,5,7]");
    run_half("batch_norm", "", "h[7,70,9,11]" FOUR(70) " h[7,70,9,11]");
    run_half("batch_norm", "relu=true", "h[3,17,5,7]" FOUR(17) " -");
    run_half("batch_norm_backward", "relu=true", "h[5,33,9,11] h[5,33,9,11]" THREE(33) " u8[5,33,9,11]");
    run_half("batch_norm_moments", "", "h[3,65,9,11]");
    run_half("batch_norm_backward_sums", "", "h[5,33,9,11] h[5,33,9,11] f32[33] f32[33] -");
    run_half("batch_norm_backward_shift", "", "h[3,17,5,7] h[3,17,5,7]" THREE(17) " f32[5,48] -");
    run_half("layer_norm", "", "h[5,33,9,11] f32[33] f32[33]");
    run_half("layer_norm_backward", "", "h[5,33,9,11] h[5,33,9,11] f32[33] f32[5,9,11] f32[5,9,11]");
    run_half("channel_sum", "axis=1", "h[5,33,9,11]");
    run_half("dropout", "p=0.3 id=7", "h[3,17] i64[3]");
    run_half("dropout", "p=0.3 id=7 per_image=true", "h[9,17] i64[3]");
    run_half("mean", "", "h[3,17,5,7]");
    run_half("mean_backward", "d1=17 d2=5 d3=7", "h[3]");
    run_half("cross_entropy", "label_smoothing=0.1", "h[41,11] i64[41] f32[1]");
    run_half("cross_entropy_backward", "", "f32[1] h[41,11] i64[41] f32[1]");
    run_half("soft_cross_entropy", "label_smoothing=0.1", "h[41,11] f32[41,11] f32[1]");
    run_half("soft_cross_entropy_backward", "", "f32[1] h[41,11] f32[41,11] f32[1]");
    run_half("accuracy", "", "h[41,11] i64[41]");
}

/* ---- optimisers ------------------------------------------------------------------------------------------- */

enum { N_PARAMS = 60, MANY_IN = 1 + 3 * N_PARAMS, MANY_OUT = 2 * N_PARAMS };

/* A call of sgd without momentum over many parameters, p of 100 + p elements, all in one arena: hyper, then each
   group. */
struct many {
    struct cvy_sgd_attrs attrs;
    struct cvy_operand_spec in[MANY_IN], out[MANY_OUT];
    struct cvy_call call;
    size_t at[MANY_IN], n; /* in elements */
    void *in_memory[MANY_IN], *out_memory[MANY_OUT];
};

static void describe_many(struct many *m) {
    m->in[0].desc = cvy_desc_make(CVY_F32, CVY_SHAPE(2));
    m->n = 64;
    for (int i = 1; i < MANY_IN; i++) {
        int p = (i - 1) / 3;
        m->in[i].desc = cvy_desc_make(CVY_F32, CVY_SHAPE(100 + p));
        m->at[i] = m->n;
        m->n += 192; /* room for the largest, aligned */
    }
    for (int o = 0; o < MANY_OUT; o++)
        m->out[o] = m->in[1 + o / 2 * 3 + (o % 2 ? 2 : 0)];
    m->call = (struct cvy_call){.op = cvy_op_find("sgd"),
                                .attrs = &m->attrs,
                                .n_in = MANY_IN,
                                .n_out = MANY_OUT,
                                .in = m->in,
                                .out = m->out,
                                .is_training = true};
}

static void run_many(struct many *m, float *values) {
    struct cvy_device *device = open_device(0);
    const struct cvy_backend *b = device->backend;
    const struct cvy_kernel_impl *impl = cvy_kernel_select(device, &m->call, NULL);
    struct cvy_kernel *kernel;
    size_t scratch_bytes, n_bytes = m->n * sizeof(float);
    void *arena;
    double touch_s;
    assert_non_null(impl);
    assert_int_equal(b->alloc(device, n_bytes, &arena, &touch_s), CVY_OK);
    assert_int_equal(b->upload(device, arena, values, n_bytes), CVY_OK);
    for (int i = 0; i < MANY_IN; i++)
        m->in_memory[i] = (float *)arena + m->at[i];
    for (int o = 0; o < MANY_OUT; o++)
        m->out_memory[o] = m->in_memory[1 + o / 2 * 3 + (o % 2 ? 2 : 0)];
    assert_int_equal(impl->prepare(device, &m->call, &kernel, &scratch_bytes), CVY_OK);
    assert_int_equal(scratch_bytes, 0);
    assert_int_equal(impl->run(kernel, m->in_memory, m->out_memory, NULL), CVY_OK);
    assert_int_equal(b->download(device, values, arena, n_bytes), CVY_OK);
    impl->release(kernel);
    b->release(device, arena, n_bytes);
    close_device(device);
}

/* More parameters than one launch takes; what lies between them stays as it was. */
static void many_parameters(void **state) {
    static struct many m;
    float *values;
    (void)state;
    describe_many(&m);
    values = malloc(m.n * sizeof *values);
    assert_non_null(values);
    for (size_t k = 0; k < m.n; k++)
        values[k] = (float)(k % 1000);
    values[0] = 0.5f; /* rate */
    values[1] = 3;    /* number of the update */
    run_many(&m, values);
    for (int i = 1; i < MANY_IN; i++) {
        for (size_t e = 0; e < 192; e++) {
            size_t k = m.at[i] + e;
            bool is_param = i % 3 == 1 && e < (size_t)(100 + (i - 1) / 3);
            float was = (float)(k % 1000), grad = (float)((k + 192) % 1000);
            assert_true(values[k] == (is_param ? was - 0.5f * grad : was));
        }
    }
    free(values);
}

int main(void) {
    const struct cvy_backend *backend;
    if (cvy_backend_load("cuda", &backend) == CVY_ERR_UNSUPPORTED) {
        print_message("skipped: %s\n", cvy_error());
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_plain),      cmocka_unit_test(from_nhwc),
        cmocka_unit_test(far_from_zero),   cmocka_unit_test(rows_of_many_chunks),
        cmocka_unit_test(many_parameters), cmocka_unit_test(same_bits_everywhere),
        cmocka_unit_test(of_16_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

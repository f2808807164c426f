/* Kernels by rows on tensors large enough for several threads: right, and a row has the same bits on any number of
   threads and in any shard. (The operators' conformance cases are small, and run on one thread.) */
#include "backends/cpu/cpu.h"
#include "ops/cases.h"
#include "rt/fallback.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX = 4, FALLBACK = 0 };

struct tensors { /* operands of one call */
    int n;
    struct cvy_desc desc[MAX];
    void *data[MAX];
};

static void add(struct tensors *t, struct cvy_desc desc) {
    t->desc[t->n] = desc;
    t->data[t->n++] = calloc(1, cvy_desc_bytes(&desc));
}

static void release(struct tensors *t) {
    for (int i = 0; i < t->n; i++)
        free(t->data[i]);
}

/* f32, normal; i64, below 10 */
static void add_random(struct tensors *t, struct cvy_desc desc, uint64_t seed) {
    double *values = calloc((size_t)cvy_shape_count(&desc.shape), sizeof *values);
    (desc.dtype == CVY_F32 ? cvy_fill_normal(0, &desc, seed, values)
                           : cvy_fill_below(0, &desc, seed, 10, values));
    add(t, desc);
    cvy_narrow(desc.dtype, values, cvy_shape_count(&desc.shape), t->data[t->n - 1]);
    free(values);
}

static struct cvy_desc f32(int64_t rows, int64_t n) { return (struct cvy_desc){CVY_F32, CVY_SHAPE(rows, n)}; }

/* The outputs of an operator, by its native kernel for n_threads threads, or by the reference. */
static struct tensors run(const char *name, const char *attrs_text, const struct tensors *in, int n_threads) {
    struct cvy_device device = {
        .backend = cvy_backend_find("cpu"), .spec = {.n_threads = n_threads}, .name = "cpu:0"};
    const struct cvy_op *op = cvy_op_find(name);
    struct cvy_operand_spec in_spec[MAX], out_spec[MAX];
    struct cvy_desc out_desc[MAX];
    struct tensors out = {0};
    _Alignas(8) char attrs[64];
    assert_true(op->attrs_size <= sizeof attrs);
    cvy_attrs_default(op, attrs);
    assert_int_equal(cvy_attrs_parse(op, attrs_text, attrs), CVY_OK);
    assert_int_equal(cvy_op_infer(op, attrs, in->n, in->desc, out_desc), CVY_OK);
    for (int i = 0; i < in->n; i++)
        in_spec[i] = (struct cvy_operand_spec){.desc = in->desc[i]};
    for (int o = 0; o < op->n_out; o++) {
        out_spec[o] = (struct cvy_operand_spec){.desc = out_desc[o]};
        add(&out, out_desc[o]);
    }
    struct cvy_call call = {
        .op = op, .attrs = attrs, .n_in = in->n, .n_out = out.n, .in = in_spec, .out = out_spec};
    bool is_fallback = true;
    const struct cvy_kernel_impl *impl =
        n_threads == FALLBACK ? &cvy_fallback_kernel : cvy_kernel_select(&device, &call, &is_fallback);
    assert_int_equal(is_fallback, n_threads == FALLBACK);
    struct cvy_kernel *kernel;
    size_t scratch_bytes;
    assert_int_equal(impl->prepare(&device, &call, &kernel, &scratch_bytes), CVY_OK);
    void *scratch = malloc(scratch_bytes + 1);
    assert_int_equal(impl->run(kernel, in->data, out.data, scratch), CVY_OK);
    impl->release(kernel);
    free(scratch);
    return out;
}

static void assert_near(const struct tensors *got, const struct tensors *expected) {
    for (int o = 0; o < got->n; o++) {
        int64_t n = cvy_shape_count(&got->desc[o].shape);
        double *a = malloc((size_t)n * sizeof *a), *b = malloc((size_t)n * sizeof *b), error = 0, size = 0;
        cvy_widen(got->desc[o].dtype, got->data[o], n, a);
        cvy_widen(expected->desc[o].dtype, expected->data[o], n, b);
        for (int64_t i = 0; i < n; i++) {
            error += (a[i] - b[i]) * (a[i] - b[i]);
            size += b[i] * b[i];
        }
        assert_true(sqrt(error) <= 1e-6 * sqrt(size));
        free(a);
        free(b);
    }
}

static void assert_same(const struct tensors *a, const struct tensors *b) {
    for (int o = 0; o < a->n; o++)
        assert_memory_equal(a->data[o], b->data[o], cvy_desc_bytes(&a->desc[o]));
}

/* Against the reference on one thread, then the same bits on more. */
static void assert_right(const char *name, const char *attrs, const struct tensors *in) {
    struct tensors expected = run(name, attrs, in, FALLBACK), one = run(name, attrs, in, 1);
    assert_near(&one, &expected);
    for (int n_threads = 2; n_threads <= 5; n_threads++) {
        struct tensors more = run(name, attrs, in, n_threads);
        assert_same(&more, &one);
        release(&more);
    }
    release(&one);
    release(&expected);
}

enum { N = 301, K = 37 };

static void right_on_any_threads(void **state) {
    static const struct {
        const char *name, *attrs;
        int n_matrices, n_labels;
        bool has_divisor;
    } calls[] = {
        {"softmax", "", 1, 0, false},  {"softmax_backward", "", 2, 0, false},
        {"mean", "", 1, 0, false},     {"cross_entropy", "label_smoothing=0.1", 1, 1, true},
        {"accuracy", "", 1, 1, false},
    };
    (void)state;
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        struct tensors in = {0};
        for (int i = 0; i < calls[c].n_matrices; i++)
            add_random(&in, f32(N, K), c + 10 * (size_t)i);
        if (calls[c].n_labels)
            add_random(&in, (struct cvy_desc){CVY_I64, CVY_SHAPE(N)}, c);
        if (calls[c].has_divisor) {
            add(&in, (struct cvy_desc){CVY_F32, CVY_SHAPE(1)});
            *(float *)in.data[in.n - 1] = N;
        }
        assert_right(calls[c].name, calls[c].attrs, &in);
        release(&in);
    }
}

/* Rows with a NaN at the label, before and behind it, and a label that is none. */
static void broken_rows_have_no_rank(void **state) {
    struct tensors in = {0};
    (void)state;
    add_random(&in, f32(N, K), 1);
    add_random(&in, (struct cvy_desc){CVY_I64, CVY_SHAPE(N)}, 2);
    float *logits = in.data[0];
    int64_t *labels = in.data[1];
    const int64_t at[] = {labels[0], K + 0, 2 * K + K - 1};
    for (int i = 0; i < 3; i++)
        logits[at[i]] = NAN;
    labels[3] = K;
    assert_right("accuracy", "", &in);
    struct tensors out = run("accuracy", "", &in, 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(((int32_t *)out.data[0])[i], K);
    release(&out);
    release(&in);
}

static void gradients_on_any_threads(void **state) {
    struct tensors entropy = {0}, mean = {0}, batch_mean = {0};
    struct cvy_desc one = {CVY_F32, CVY_SHAPE(1)};
    (void)state;
    add_random(&entropy, one, 1);
    add_random(&entropy, f32(N, K), 2);
    add_random(&entropy, (struct cvy_desc){CVY_I64, CVY_SHAPE(N)}, 3);
    add_random(&entropy, one, 4);
    assert_right("cross_entropy_backward", "label_smoothing=0.1", &entropy);
    add_random(&mean, (struct cvy_desc){CVY_F32, CVY_SHAPE(N)}, 5);
    assert_right("mean_backward", "d1=37", &mean);
    add_random(&batch_mean, one, 6);
    add_random(&batch_mean, one, 7);
    add_random(&batch_mean, (struct cvy_desc){CVY_F32, CVY_SHAPE(N * K)}, 8);
    assert_right("batch_mean_backward", "", &batch_mean);
    release(&entropy);
    release(&mean);
    release(&batch_mean);
}

/* Images `first` to the end of `whole`'s tensors (dimension 0), but for the single numbers. */
static struct tensors shard_of(const struct tensors *whole, int64_t first) {
    struct tensors part = {0};
    for (int i = 0; i < whole->n; i++) {
        struct cvy_desc desc = whole->desc[i];
        size_t skip = 0;
        if (desc.shape.dim[0] == N) {
            skip = cvy_desc_bytes(&desc) / N * (size_t)first;
            desc.shape.dim[0] -= first;
        }
        add(&part, desc);
        memcpy(part.data[i], (char *)whole->data[i] + skip, cvy_desc_bytes(&desc));
    }
    return part;
}

/* An image's losses and probabilities do not depend on the other images. */
static void loss_of_a_shard(void **state) {
    struct tensors in = {0};
    (void)state;
    add_random(&in, f32(N, K), 1);
    add_random(&in, (struct cvy_desc){CVY_I64, CVY_SHAPE(N)}, 2);
    add_random(&in, (struct cvy_desc){CVY_F32, CVY_SHAPE(1)}, 3);
    struct tensors part = shard_of(&in, 100), whole = run("cross_entropy", "", &in, 3);
    struct tensors expected = shard_of(&whole, 100), got = run("cross_entropy", "", &part, 1);
    for (int o = 1; o < 3; o++) /* output 0 is the sum */
        assert_memory_equal(got.data[o], expected.data[o], cvy_desc_bytes(&got.desc[o]));
    release(&in);
    release(&part);
    release(&whole);
    release(&expected);
    release(&got);
}

static void dropout_masks(void **state) {
    static const char *const attrs[] = {"p=0.3 id=5", "p=1", "p=0", "training=false"};
    (void)state;
    for (size_t k = 0; k < sizeof attrs / sizeof *attrs; k++) {
        for (int64_t first = 0; first < 3;
             first++) { /* image 1 of 37 elements begins within a block of four */
            struct tensors in = {0};
            add_random(&in, f32(N, K), k);
            add(&in, (struct cvy_desc){CVY_I64, CVY_SHAPE(3)});
            memcpy(in.data[1], (int64_t[]){11, 12, first}, 3 * sizeof(int64_t));
            assert_right("dropout", attrs[k], &in);
            struct tensors got = run("dropout", attrs[k], &in, 2),
                           expected = run("dropout", attrs[k], &in, FALLBACK);
            for (int64_t i = 0; i < N * K; i++)
                assert_int_equal(((float *)got.data[0])[i] == 0, ((float *)expected.data[0])[i] == 0);
            release(&got);
            release(&expected);
            release(&in);
        }
    }
}

/* A label that is no class is not hidden, and spoils no other image. */
static void wrong_labels(void **state) {
    struct tensors in = {0};
    (void)state;
    add_random(&in, f32(3, K), 1);
    add(&in, (struct cvy_desc){CVY_I64, CVY_SHAPE(3)});
    memcpy(in.data[1], (int64_t[]){-1, K, 2}, 3 * sizeof(int64_t));
    add_random(&in, (struct cvy_desc){CVY_F32, CVY_SHAPE(1)}, 3);
    struct tensors out = run("cross_entropy", "", &in, 1);
    const float *losses = out.data[1];
    assert_true(isnan(*(float *)out.data[0]) && isnan(losses[0]) && isnan(losses[1]) && losses[2] > 0);
    release(&in);
    release(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_on_any_threads),
        cmocka_unit_test(broken_rows_have_no_rank),
        cmocka_unit_test(gradients_on_any_threads),
        cmocka_unit_test(loss_of_a_shard),
        cmocka_unit_test(dropout_masks),
        cmocka_unit_test(wrong_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

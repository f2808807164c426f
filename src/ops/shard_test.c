/* What makes a step independent of how its batch is cut: sums over shards are the whole batch's results. */
#include "op_subject.h"
#include "ops/batch_norm.h"
#include "ops/dropout.h"

enum { IMAGES = 5, FIRST = 2 }; /* shards of 2 and 3 images */

/* One output of an operator on images [from, to) of inputs that have the batch as first dimension, or not. */
struct part {
    const char *op;
    const void *attrs;
    int n_in;
    const struct cvy_desc *desc; /* of the whole batch */
    const double *const *values;
    uint32_t batched; /* bit i: input i is cut */
};

static int64_t run_part(const struct part *p, int64_t from, int64_t to, int output, double *result) {
    struct cvy_desc in[CVY_CASE_MAX];
    struct op_subject s;
    for (int i = 0; i < p->n_in; i++) {
        in[i] = p->desc[i];
        if (p->batched >> i & 1)
            in[i].shape.dim[0] = to - from;
    }
    op_subject_open(&s, cvy_op_find(p->op), p->attrs, in, p->n_in);
    for (int i = 0; i < p->n_in; i++) {
        int64_t n = cvy_shape_count(&in[i].shape);
        int64_t start = p->batched >> i & 1 ? from * (n / (to - from)) : 0;
        memcpy(interpret_value(&s.in, i), p->values[i] + start, (size_t)n * sizeof(double));
    }
    interpret_all(&s.in);
    cvy_value v = op_subject_node(&s)->out[output];
    int64_t n = interpret_count(s.g, v);
    memcpy(result, s.in.values[v], (size_t)n * sizeof *result);
    op_subject_close(&s);
    return n;
}

/* Dropout's numbers belong to positions in the global batch: shards drop what the whole batch drops. */
static void dropout_ignores_shards(void **state) {
    (void)state;
    enum { EACH = 7 }; /* not a multiple of the generator's four */
    const struct cvy_dropout_attrs attrs = {.p = 0.4, .id = 3, .training = true};
    const struct cvy_desc desc[] = {{CVY_F32, CVY_SHAPE(IMAGES, EACH)}, {CVY_I64, CVY_SHAPE(3)}};
    double x[IMAGES * EACH], whole[IMAGES * EACH], shards[IMAGES * EACH], rng[] = {99, 12, 0};
    const struct part p = {"dropout", &attrs, 2, desc, (const double *const[]){x, rng}, 1};
    uint64_t seed = test_seed();
    rng[0] = (double)(seed % 1000);
    cvy_fill_normal(0, &desc[0], seed, x);
    run_part(&p, 0, IMAGES, 0, whole);
    int64_t n = run_part(&p, 0, FIRST, 0, shards);
    rng[2] = FIRST;
    run_part(&p, FIRST, IMAGES, 0, shards + n);
    assert_memory_equal(whole, shards, sizeof whole);
}

static void dropout_drops_its_share(void **state) {
    (void)state;
    enum { N = 20000 };
    const struct cvy_dropout_attrs attrs = {.p = 0.3, .id = 1, .training = true};
    const struct cvy_desc desc[] = {{CVY_F32, CVY_SHAPE(N, 1)}, {CVY_I64, CVY_SHAPE(3)}};
    static double x[N], y[N];
    const double rng[] = {(double)(test_seed() % 100000), 1, 0};
    const struct part p = {"dropout", &attrs, 2, desc, (const double *const[]){x, rng}, 1};
    int n_dropped = 0;
    for (int i = 0; i < N; i++)
        x[i] = 1;
    run_part(&p, 0, N, 0, y);
    for (int i = 0; i < N; i++) {
        n_dropped += y[i] == 0;
        assert_true(y[i] == 0 || fabs(y[i] - 1 / 0.7) < 1e-15);
    }
    assert_true(fabs(n_dropped - 0.3 * N) < 6 * sqrt(0.3 * 0.7 * N)); /* six standard deviations */
}

/* The loss divides by the global batch, so the shards' losses add up to it. */
static void losses_of_shards_add_up(void **state) {
    (void)state;
    const struct cvy_desc desc[] = {
        {CVY_F32, CVY_SHAPE(IMAGES, 4)}, {CVY_I64, CVY_SHAPE(IMAGES)}, {CVY_F32, CVY_SHAPE(1)}};
    double logits[IMAGES * 4], labels[IMAGES], divisor = IMAGES, whole, first, second;
    const struct part p = {
        "cross_entropy", NULL, 3, desc, (const double *const[]){logits, labels, &divisor}, 3};
    uint64_t seed = test_seed();
    cvy_fill_normal(0, &desc[0], seed, logits);
    cvy_fill_below(1, &desc[1], seed, 4, labels);
    run_part(&p, 0, IMAGES, 0, &whole);
    run_part(&p, 0, FIRST, 0, &first);
    run_part(&p, FIRST, IMAGES, 0, &second);
    assert_true(fabs(whole - (first + second)) < 1e-14 * fabs(whole));
}

/* Statistics are summed with the images as weight; a shard with one value a channel is left out, so that the
   running statistics are those of the other shard alone, and stay when there is none. */
static void single_values_are_left_out_of_statistics(void **state) {
    (void)state;
    enum { C = 2, N_STATS = 2 * C + 1 };
    const struct cvy_desc vector = {CVY_F32, CVY_SHAPE(C)};
    const struct cvy_desc desc[] = {{CVY_F32, CVY_SHAPE(IMAGES, C)}, vector, vector, vector, vector};
    const struct cvy_batch_norm_attrs attrs = {.eps = 1e-5, .momentum = 0.1, .training = true};
    double x[IMAGES * C], ones[C] = {1, 1}, one[N_STATS], rest[N_STATS], y[IMAGES * C];
    const struct part p = {
        "batch_norm", &attrs, 5, desc, (const double *const[]){x, ones, ones, ones, ones}, 1};
    cvy_fill_normal(0, &desc[0], test_seed(), x);
    run_part(&p, 0, 1, CVY_BATCH_NORM_STATS, one);
    run_part(&p, 1, IMAGES, CVY_BATCH_NORM_STATS, rest);
    for (int k = 0; k < N_STATS; k++)
        assert_true(one[k] == 0);
    assert_true(rest[2 * C] == IMAGES - 1);
    run_part(&p, 0, 1, CVY_BATCH_NORM_Y, y);
    assert_true(y[0] == 1 && y[1] == 1); /* variance 0: only the bias is left */

    const struct cvy_desc update[] = {vector, vector, {.dtype = CVY_I64}, {CVY_F32, CVY_SHAPE(N_STATS)}};
    double mean[C] = {3, 4}, var[C] = {5, 6}, batches = 7, after[C];
    const struct part u = {
        "batch_norm_update", &attrs, 4, update, (const double *const[]){mean, var, &batches, one}, 0};
    run_part(&u, 0, 1, 0, after);
    assert_memory_equal(after, mean, sizeof mean);
    run_part(&u, 0, 1, 1, after);
    assert_memory_equal(after, var, sizeof var);
    run_part(&u, 0, 1, 2, after);
    assert_true(after[0] == 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout_ignores_shards),
        cmocka_unit_test(dropout_drops_its_share),
        cmocka_unit_test(losses_of_shards_add_up),
        cmocka_unit_test(single_values_are_left_out_of_statistics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

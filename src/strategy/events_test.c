/* Events of schedules: everything that must be ordered is, by streams and events alone, and no wait could be left
   out. What must be ordered is said here a second time, pair by pair. */
#include "rt/program_text.h"
#include "strategy/schedule_case.h"

#include <string.h>

enum { MAX_INSTRS = 2048 };

/* What instruction i does with bucket b of sum k: 0 nothing, 1 reads, 2 writes. */
static int bucket_access(const struct cvy_instr *i, int32_t k, int32_t b, int32_t first_bucket) {
    switch ((int)i->kind) {
    case CVY_I_RUN: {
        int32_t first = i->bucket >= 0 ? i->bucket : i->part;
        bool is_before = i->phase == CVY_PHASE_BACKWARD && b < first; /* complete already */
        return i->sum == k && !is_before ? 2 : 0;
    }
    case CVY_I_ADD:
        return i->bucket != b ? 0 : i->sum == k ? 2 : i->from == k;
    case CVY_I_REDUCE:
        return i->bucket != b ? 0 : i->sum == k ? 2 : 1;
    case CVY_I_ACCUMULATE:
        return i->bucket == b && k == 0 ? 2 : 0;
    case CVY_I_UPDATE:
        return i->bucket == b && k == 0;
    case CVY_I_CHECK:
        return b == first_bucket && k == 0;
    case CVY_I_FINITE:
        return k == 0;
    case CVY_I_CLIP:
        return k == 0 ? 2 : 0;
    default:
        return 0;
    }
}

static int slot_access(const struct cvy_instr *i) {
    bool is_read = i->kind == CVY_I_SEND || i->kind == CVY_I_RESULT;
    return i->slot < 0 ? 0 : is_read ? 1 : 2;
}

static int persist_access(const struct cvy_instr *i, int32_t replica) {
    bool is_read = i->kind == CVY_I_RUN || i->kind == CVY_I_REFRESH;
    bool is_broadcast = i->kind == CVY_I_BROADCAST;
    return i->kind == CVY_I_UPDATE || (is_broadcast && replica > 0) ? 2 : is_read || is_broadcast;
}

/* Rows: written by runs, where there are any, and by their exchange. */
static int row_access(const struct cvy_instr *i, bool has_rows) {
    return has_rows && (i->kind == CVY_I_RUN || i->kind == CVY_I_EXCHANGE) ? 2 : 0;
}

static bool has_exchange(const cvy_schedule *schedule) {
    for (size_t k = 0; k < schedule->n; k++) {
        if (schedule->data[k].kind == CVY_I_EXCHANGE)
            return true;
    }
    return false;
}

/* Of two accesses, both are there and one writes. */
static bool clash(int a, int b) { return a && b && a + b > 2; }

static bool must_be_ordered(const struct cvy_program *p, const struct cvy_instr *a, const struct cvy_instr *b,
                            int32_t n_buckets, int32_t first_bucket, bool has_rows) {
    if (a->stream == b->stream)
        return false; /* it is */
    if (a->kind == CVY_I_RESULT || a->kind == CVY_I_CHECK || a->kind == CVY_I_FINITE)
        return false; /* the host has waited for it */
    if (clash(row_access(a, has_rows), row_access(b, has_rows)))
        return true;
    if (a->slot == b->slot && clash(slot_access(a), slot_access(b)))
        return true;
    if (clash(persist_access(a, p->replica), persist_access(b, p->replica)))
        return true;
    int32_t n_sums = p->n_sums > p->n_sums_split ? p->n_sums : p->n_sums_split;
    for (int32_t k = 0; k < n_sums; k++) {
        for (int32_t bucket = 0; bucket < n_buckets; bucket++) {
            if (clash(bucket_access(a, k, bucket, first_bucket), bucket_access(b, k, bucket, first_bucket)))
                return true;
        }
    }
    return false;
}

/* Positions that must be ordered, the earlier one first. */
struct pair {
    int32_t a, b;
};
typedef CVY_VEC(struct pair) pairs;

static void find_pairs(const struct cvy_program *p, const cvy_schedule *schedule, int32_t n_buckets,
                       int32_t first_bucket, pairs *out) {
    for (int32_t b = 0; b < (int32_t)schedule->n; b++) {
        for (int32_t a = 0; a < b; a++) {
            if (must_be_ordered(p, &schedule->data[a], &schedule->data[b], n_buckets, first_bucket,
                                has_exchange(schedule)))
                assert_ok(cvy_vec_push(out, (struct pair){a, b}));
        }
    }
}

/* clock[i][t]: so many instructions of stream t, counted as positions, are complete before i begins; in its own
   stream, i itself counts. Waits of instruction `without` are left out. */
static void compute_clocks(const cvy_schedule *schedule, int32_t without,
                           int32_t clock[MAX_INSTRS][CVY_N_STREAMS]) {
    int32_t now[CVY_N_STREAMS][CVY_N_STREAMS] = {{0}}, recorded[64] = {0};
    assert_true(schedule->n <= MAX_INSTRS);
    for (int32_t n = 0; n < (int32_t)schedule->n; n++) {
        const struct cvy_instr *i = &schedule->data[n];
        int32_t *mine = now[i->stream];
        for (int e = 0; e < 64; e++) {
            if (n == without || !(i->wait_events >> e & 1))
                continue;
            for (int t = 0; t < CVY_N_STREAMS; t++) {
                int32_t there = clock[recorded[e]][t];
                mine[t] = there > mine[t] ? there : mine[t];
            }
        }
        mine[i->stream] = n + 1;
        memcpy(clock[n], mine, sizeof clock[n]);
        if (i->record_event >= 0)
            recorded[i->record_event] = n;
    }
}

/* The number of pairs that nothing orders. */
static int count_races(const cvy_schedule *schedule, const pairs *all, int32_t without) {
    static int32_t clock[MAX_INSTRS][CVY_N_STREAMS];
    int n = 0;
    compute_clocks(schedule, without, clock);
    for (size_t k = 0; k < all->n; k++) {
        int32_t a = all->data[k].a, b = all->data[k].b;
        n += clock[b][schedule->data[a].stream] < a + 1;
    }
    return n;
}

/* Returns the number of waits. */
static int check_schedule(const struct cvy_program *p, const cvy_schedule *schedule, int32_t n_buckets,
                          int32_t first_bucket) {
    pairs all = {NULL, 0, 0};
    int n_waits = 0;
    find_pairs(p, schedule, n_buckets, first_bucket, &all);
    assert_int_equal(count_races(schedule, &all, -1), 0);
    for (int32_t n = 0; n < (int32_t)schedule->n; n++) {
        uint64_t waits = schedule->data[n].wait_events;
        assert_int_equal(waits & (waits - 1), 0); /* one, with two streams */
        n_waits += waits != 0;
        if (waits)
            assert_true(count_races(schedule, &all, n) > 0);
    }
    cvy_vec_free(&all);
    return n_waits;
}

/* All schedules of all devices. */
static int check_case(struct schedule_case c) {
    int n_waits = 0;
    schedule_case_make(&c);
    for (int32_t d = 0; d < c.n_devices; d++) {
        const struct cvy_program *p = c.program[d];
        int32_t first = 0;
        while (first < c.input.n_buckets && c.bucket_stage[first] != p->stage)
            first++;
        for (int k = 0; k < CVY_N_SCHEDULES; k++)
            n_waits += check_schedule(p, cvy_program_schedule(p, k), c.input.n_buckets, first);
    }
    schedule_case_free(&c);
    return n_waits;
}

static void check_shards(struct schedule_case c) {
#ifdef CVY_TSAN /* one thread has no races, and takes its time */
    static const int32_t some[] = {1, 3, 8};
#else
    static const int32_t some[] = {1, 2, 3, 4, 5, 8, 16};
#endif
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        for (int variant = 0; variant < 8; variant++) {
            c.n_shards = some[k] * (c.mesh ? 4 : 1);
            c.n_shards = c.n_shards < c.n_devices && !c.mesh ? c.n_devices : c.n_shards;
            c.has_skips = variant & 1;
            c.n_buckets_of_stage = variant & 2 ? 3 : 1;
            c.is_accumulating = (variant & 3) == 2;
            c.is_scaled = variant & 4;
            c.is_clipped = (variant ^ variant >> 1 ^ variant >> 2) & 1;
            check_case(c);
        }
    }
}

static void test_orders_what_must_be(void **state) {
    (void)state;
    check_shards((struct schedule_case){.strategy = "single", .n_devices = 1});
    for (int32_t n = 2; n <= 4; n++) {
        check_shards((struct schedule_case){.strategy = "ddp", .n_devices = n});
        check_shards((struct schedule_case){.strategy = "dp", .n_devices = n});
        check_shards((struct schedule_case){.strategy = "mp", .n_devices = n});
        check_shards((struct schedule_case){.strategy = "pipeline", .n_devices = n});
        check_shards((struct schedule_case){.strategy = "pipeline", .n_devices = n, .schedule = "gpipe"});
    }
    check_shards((struct schedule_case){.strategy = "single", .n_devices = 1, .is_in_layers = true});
    check_shards((struct schedule_case){.strategy = "ddp", .n_devices = 3, .is_in_layers = true});
    check_shards((struct schedule_case){.strategy = "dp", .n_devices = 2, .is_in_layers = true});
    check_shards((struct schedule_case){.strategy = "hybrid", .n_devices = 4, .mesh = "data=2,pipe=2"});
    check_shards((struct schedule_case){.strategy = "hybrid", .n_devices = 8, .mesh = "data=4,pipe=2"});
    check_shards((struct schedule_case){
        .strategy = "hybrid", .n_devices = 6, .mesh = "data=2,pipe=3", .schedule = "gpipe"});
}

/* One device needs no event; two replicas wait twice for each bucket. */
static void test_as_many_as_needed(void **state) {
    (void)state;
    struct schedule_case c = {.strategy = "single", .n_devices = 1, .n_shards = 4, .n_buckets_of_stage = 3};
    assert_int_equal(check_case(c), 0);
    c = (struct schedule_case){.strategy = "ddp", .n_devices = 2, .n_shards = 4, .n_buckets_of_stage = 3};
    schedule_case_make(&c);
    assert_int_equal(check_schedule(c.program[1], &c.program[1]->train, 3, 0), 6);
    assert_int_equal(check_schedule(c.program[1], &c.program[1]->start, 3, 0), 1);
    schedule_case_free(&c);
}

/* More buckets than there are events: numbers are used again, and the last waits share them. */
static void test_numbers_run_out(void **state) {
    (void)state;
    enum { N_BUCKETS = 200 };
    static const int32_t bucket_stage[N_BUCKETS];
    const struct cvy_strategy_input input = {.mesh = {2, 1},
                                             .device = 1,
                                             .n_shards = 4,
                                             .n_buckets = N_BUCKETS,
                                             .bucket_stage = bucket_stage,
                                             .schedule = "1f1b"};
    struct cvy_program *p = calloc(1, sizeof *p);
    assert_non_null(p);
    assert_ok(cvy_strategy_find("ddp")->schedule(&input, p));
    /* each reduce waits for its gradients; of the reduces, the first 62 or so are awaited one by one */
    int n_waits = check_schedule(p, &p->train, N_BUCKETS, 0);
    assert_in_range(n_waits, N_BUCKETS + 60, N_BUCKETS + 64);
    cvy_program_free(p);
}

/* Done again, it comes out the same; an instruction of unknown accesses is refused. */
static void test_again(void **state) {
    (void)state;
    struct schedule_case c = {
        .strategy = "pipeline", .n_devices = 3, .n_shards = 5, .n_buckets_of_stage = 2, .has_skips = true};
    schedule_case_make(&c);
    cvy_schedule *train = &c.program[1]->train;
    struct cvy_instr *before = malloc(train->n * sizeof *before);
    assert_non_null(before);
    memcpy(before, train->data, train->n * sizeof *before);
    assert_ok(cvy_events_write(c.program[1], train));
    assert_memory_equal(before, train->data, train->n * sizeof *before);
    train->data[0].stream = 2;
    assert_fails(cvy_events_write(c.program[1], train), CVY_ERR_FAILED, "in stream 2");
    free(before);
    schedule_case_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_what_must_be),
        cmocka_unit_test(test_as_many_as_needed),
        cmocka_unit_test(test_numbers_run_out),
        cmocka_unit_test(test_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What is ordered, what is not, and what the message says. */
#include "backends/async/order.h"

#include "cvy_test.h"

#include <string.h>

static char memory[1024] __attribute__((aligned(64)));

static struct async_order open_order(void) {
    struct async_order order;
    async_order_open(&order, "async:7", CVY_N_STREAMS);
    assert_ok(async_order_add(&order, memory, sizeof memory));
    async_order_name(&order, memory, 256, "persist");
    async_order_name(&order, memory + 256, 256, "slot 1");
    return order;
}

/* One access of `op` in a stream. */
static cvy_status access_memory(struct async_order *order, const char *op, int stream, bool is_write,
                                size_t at, size_t n_bytes) {
    const struct async_what what = {.op = op, .stream = stream, .step = 3};
    const struct cvy_access access = {memory + at, n_bytes, is_write, "dw"};
    return async_order_access(order, &what, &access, 1);
}
#define READ(op, stream, at, n) access_memory(&order, op, stream, false, at, n)
#define WRITE(op, stream, at, n) access_memory(&order, op, stream, true, at, n)

static void test_one_stream_is_ordered(void **state) {
    (void)state;
    struct async_order order = open_order();
    assert_ok(WRITE("a", 0, 0, 100));
    assert_ok(READ("b", 0, 0, 100));
    assert_ok(WRITE("c", 0, 0, 1024));
    async_order_free(&order);
}

static void test_conflicts(void **state) {
    (void)state;
    static const struct {
        bool first_writes, then_writes;
        size_t at, then_at;
        bool is_race;
    } cases[] = {
        {true, true, 0, 0, true},    {true, false, 0, 0, true},     {false, true, 0, 0, true},
        {false, false, 0, 0, false}, {true, true, 0, 64, false},    {true, true, 0, 63, true},
        {true, true, 64, 0, false},  {true, false, 300, 256, true}, {true, true, 960, 1023, true},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct async_order order = open_order();
        assert_ok(access_memory(&order, "one", 1, cases[k].first_writes, cases[k].at, 1));
        cvy_status status = access_memory(&order, "two", 0, cases[k].then_writes, cases[k].then_at, 1);
        assert_int_equal(status, cases[k].is_race ? CVY_ERR_FAILED : CVY_OK);
        async_order_free(&order);
    }
}

/* Two reads in different streams, then a write that knows one of them only. */
static void test_every_reader_counts(void **state) {
    (void)state;
    struct async_order order = open_order();
    assert_ok(READ("a", 0, 0, 64));
    assert_ok(READ("b", 1, 0, 64));
    assert_fails(WRITE("c", 1, 0, 64), CVY_ERR_FAILED, "after a (stream 0), which reads persist, byte 0");
    async_order_free(&order);
}

static void test_events_order(void **state) {
    (void)state;
    struct async_order order = open_order();
    assert_fails(async_order_wait(&order, 0, 5), CVY_ERR_FAILED, "event e5, which was not recorded");
    assert_ok(WRITE("a", 1, 0, 64));
    async_order_record(&order, 1, 5);
    assert_ok(WRITE("b", 1, 64, 64));
    assert_ok(async_order_wait(&order, 0, 5));
    assert_ok(READ("c", 0, 0, 64));                                     /* before the record */
    assert_fails(READ("d", 0, 64, 64), CVY_ERR_FAILED, "b (stream 1)"); /* behind it */
    async_order_free(&order);
}

/* A wait means the newest record before it; it carries on what that stream had waited for. */
static void test_records_again(void **state) {
    (void)state;
    struct async_order order = open_order();
    assert_ok(WRITE("a", 0, 0, 64));
    async_order_record(&order, 0, 1);
    assert_ok(async_order_wait(&order, 1, 1));
    assert_ok(WRITE("b", 1, 64, 64));
    async_order_record(&order, 1, 1);
    assert_ok(WRITE("c", 0, 128, 64));
    assert_ok(async_order_wait(&order, 0, 1));
    assert_ok(READ("d", 0, 0, 192));
    assert_fails(READ("e", 1, 128, 64), CVY_ERR_FAILED, "c (stream 0)");
    async_order_free(&order);
}

static void test_host_orders(void **state) {
    (void)state;
    struct async_order order = open_order();
    assert_ok(WRITE("a", 0, 0, 64));
    assert_ok(WRITE("b", 1, 64, 64));
    async_order_host(&order, 0);
    assert_ok(READ("c", 1, 0, 64)); /* the host has waited for a */
    assert_fails(READ("d", 0, 64, 64), CVY_ERR_FAILED, "b (stream 1)");
    async_order_settle(&order); /* now for everything */
    assert_ok(WRITE("e", 0, 0, 1024));
    assert_fails(READ("f", 1, 0, 64), CVY_ERR_FAILED, "e (stream 0)");
    assert_fails(async_order_wait(&order, 1, 0), CVY_ERR_FAILED, "not recorded"); /* events are of an epoch */
    async_order_free(&order);
}

static void test_outside(void **state) {
    (void)state;
    struct async_order order = open_order();
    char other[64];
    const struct cvy_access access = {other, 8, false, "x"};
    const struct async_what what = {.op = "relu"};
    assert_fails(async_order_access(&order, &what, &access, 1), CVY_ERR_FAILED,
                 "relu: its x (8 bytes) does not lie in the device's memory");
    assert_fails(WRITE("a", 0, 1000, 25), CVY_ERR_FAILED, "does not lie in");
    assert_ok(WRITE("a", 0, 1000, 24));
    assert_ok(WRITE("nothing", 1, 1024, 0));
    async_order_remove(&order, memory);
    assert_fails(WRITE("a", 0, 0, 1), CVY_ERR_FAILED, "does not lie in");
    async_order_free(&order);
}

static void test_message(void **state) {
    (void)state;
    struct async_order order = open_order();
    struct async_what send = {.op = "send", .has_instr = true, .stream = 1, .step = 3};
    send.instr = (struct cvy_instr){.kind = CVY_I_SEND,
                                    .phase = CVY_PHASE_FORWARD,
                                    .stage = 0,
                                    .part = 1,
                                    .shard = 2,
                                    .slot = 1,
                                    .sum = -1,
                                    .from = -1,
                                    .bucket = -1,
                                    .stream = 1,
                                    .wait_events = 5,
                                    .record_event = 3};
    const struct cvy_access access = {memory + 320, 64, false, "activations"};
    assert_ok(async_order_access(&order, &send, &access, 1));
    assert_fails(WRITE("conv2d", 0, 256, 128), CVY_ERR_FAILED, "");
    assert_string_equal(
        cvy_error(), "async:7: step 3: no event orders conv2d (stream 0), which writes its dw, after send of "
                     "\"send F0.1 shard 2 slot 1\" (stream 1), which reads slot 1, byte 64");
    async_order_free(&order);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_stream_is_ordered),
        cmocka_unit_test(test_conflicts),
        cmocka_unit_test(test_every_reader_counts),
        cmocka_unit_test(test_events_order),
        cmocka_unit_test(test_records_again),
        cmocka_unit_test(test_host_orders),
        cmocka_unit_test(test_outside),
        cmocka_unit_test(test_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Queues: orders that events allow, all of them sooner or later, the same ones for the same seed; memory that is shut;
   faults. Devices are opened as the engine opens them. */
#include "backends/async/async.h"

#include "cvy_test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct cvy_device *open_seeded(const char *seed, double timeout_s) {
    struct cvy_device *device;
    const struct cvy_device_spec spec = {.index = 2, .n_threads = 1, .n_local = 1, .timeout_s = timeout_s};
    assert_int_equal(seed ? setenv("CVY_ASYNC_SEED", seed, 1) : unsetenv("CVY_ASYNC_SEED"), 0);
    assert_ok(cvy_backend_find("async")->open(&spec, &device));
    assert_ok(device->backend->enter(device));
    return device;
}

static struct cvy_device *open_device(void) { return open_seeded(NULL, 0); }

/* Host functions write their letters here, in the order in which they run. */
struct letters {
    char *at;
    char letter;
};

static cvy_status write_letter(void *argument) {
    const struct letters *l = argument;
    size_t n = strlen(l->at);
    l->at[n] = l->letter;
    l->at[n + 1] = '\0';
    return l->letter == '!' ? CVY_FAIL(CVY_ERR_NAN, "here it ends") : CVY_OK;
}

static void enqueue(struct cvy_device *device, int stream, char *out, char letter) {
    const struct letters argument = {out, letter};
    const struct cvy_host_call call = {"letter", write_letter, &argument, sizeof argument, NULL, 0};
    assert_ok(device->backend->streams->begin(device, stream, NULL, 0));
    assert_ok(device->backend->streams->call(device, &call));
}

/* a b c in stream 0, x y z in stream 1, where y waits for b. */
static void run_letters(const char *seed, char *out) {
    struct cvy_device *device = open_seeded(seed, 0);
    const struct cvy_streams *streams = device->backend->streams;
    for (int round = 0; round < 2; round++) {
        enqueue(device, 0, out, 'a');
        enqueue(device, 0, out, 'b');
        assert_ok(streams->record(device, 9));
        enqueue(device, 0, out, 'c');
        enqueue(device, 1, out, 'x');
        assert_ok(streams->wait(device, 9));
        enqueue(device, 1, out, 'y');
        enqueue(device, 1, out, 'z');
        assert_ok(streams->synchronize(device));
    }
    device->backend->close(device);
}

static int place(const char *text, char letter) { return (int)(strchr(text, letter) - text); }

static void test_orders(void **state) {
    (void)state;
    int n_early = 0, n_late = 0, n_mixed = 0;
    for (int seed = 0; seed < 40; seed++) {
        char name[8], text[16] = "", again[16] = "";
        snprintf(name, sizeof name, "%d", seed);
        run_letters(name, text);
        run_letters(name, again);
        assert_string_equal(text, again);
        assert_int_equal(strlen(text), 12);
        assert_true(place(text, 'a') < place(text, 'b') && place(text, 'b') < place(text, 'c'));
        assert_true(place(text, 'x') < place(text, 'y') && place(text, 'y') < place(text, 'z'));
        assert_true(place(text, 'b') < place(text, 'y'));
        n_early += place(text, 'x') == 0;
        n_late += place(text, 'x') == 3;
        n_mixed += place(text, 'c') > place(text, 'y');
    }
    assert_true(n_early > 0 && n_late > 0 && n_mixed > 0);
}

/* A download waits for its own stream alone, and for what that stream waits for. */
static void test_download_waits(void **state) {
    (void)state;
    struct cvy_device *device = open_device();
    const struct cvy_backend *b = device->backend;
    char text[8] = "";
    float *at, host[4] = {1, 2, 3, 4}, back[4];
    double touch_s;
    assert_ok(b->alloc(device, sizeof host, (void **)&at, &touch_s));
    enqueue(device, 1, text, 'x');
    assert_ok(b->streams->record(device, 0));
    assert_ok(b->streams->begin(device, 0, NULL, 0));
    assert_ok(b->streams->wait(device, 0));
    assert_ok(b->upload(device, at, host, sizeof host));
    host[0] = 7; /* it was copied */
    assert_string_equal(text, "");
    assert_ok(b->download(device, back, at, sizeof back));
    assert_string_equal(text, "x");
    assert_true(back[0] == 1 && back[3] == 4);
    b->release(device, at, sizeof host);
    b->close(device);
}

static void test_failure_ends_all(void **state) {
    (void)state;
    struct cvy_device *device = open_device();
    const struct cvy_streams *streams = device->backend->streams;
    char text[8] = "";
    enqueue(device, 0, text, '!');
    enqueue(device, 0, text, 'a');
    assert_fails(streams->synchronize(device), CVY_ERR_NAN, "here it ends");
    streams->abandon(device);
    assert_ok(streams->synchronize(device));
    assert_string_equal(text, "!");
    enqueue(device, 1, text, 'b');
    streams->abandon(device);
    assert_ok(streams->synchronize(device));
    assert_string_equal(text, "!");
    device->backend->close(device);
}

static void test_progress_orders_nothing(void **state) {
    (void)state;
    struct cvy_device *device = open_device();
    const struct cvy_backend *b = device->backend;
    float *at, host[16] = {0};
    double touch_s;
    assert_ok(b->alloc(device, sizeof host, (void **)&at, &touch_s));
    assert_ok(b->streams->begin(device, 1, NULL, 0));
    assert_ok(b->upload(device, at, host, sizeof host));
    assert_ok(b->streams->progress(device));
    assert_ok(b->streams->begin(device, 0, NULL, 4));
    assert_fails(b->zero(device, at, sizeof host), CVY_ERR_FAILED, "step 4: no event orders zero (stream 0)");
    b->streams->abandon(device);
    b->release(device, at, sizeof host);
    assert_fails(b->streams->begin(device, 2, NULL, 0), CVY_ERR_FAILED, "no stream 2");
    b->close(device);
}

/* Whoever takes a device's address for one of the host's does not get far. */
static void test_memory_is_shut(void **state) {
    (void)state;
    struct cvy_device *device = open_device();
    const struct cvy_backend *b = device->backend;
    double touch_s;
    int code;
    float *at, one = 1;
    assert_ok(b->alloc(device, sizeof *at, (void **)&at, &touch_s));
    assert_ok(b->upload(device, at, &one, sizeof one));
    assert_ok(b->streams->synchronize(device));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* not a sanitizer's */
        _exit(*(volatile float *)at == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFSIGNALED(code) && WTERMSIG(code) == SIGSEGV);
    b->release(device, at, sizeof *at);
    b->close(device);
}

/* ---- faults ---------------------------------------------------------------------------------------------- */

static const struct cvy_instr check = {.kind = CVY_I_CHECK,
                                       .stage = -1,
                                       .part = -1,
                                       .shard = -1,
                                       .slot = -1,
                                       .sum = -1,
                                       .from = -1,
                                       .bucket = -1,
                                       .record_event = -1};

/* One upload in step `step`. */
static cvy_status upload_in(const char *variable, const char *fault, uint64_t step, double timeout_s) {
    float *at, one = 1;
    double touch_s;
    assert_int_equal(setenv(variable, fault, 1), 0);
    struct cvy_device *device = open_seeded(NULL, timeout_s);
    unsetenv(variable);
    const struct cvy_backend *b = device->backend;
    assert_ok(b->alloc(device, sizeof *at, (void **)&at, &touch_s));
    assert_ok(b->streams->begin(device, 0, &check, step));
    assert_ok(b->upload(device, at, &one, sizeof one));
    cvy_status status = b->streams->synchronize(device);
    if (status != CVY_OK)
        b->streams->abandon(device);
    b->release(device, at, sizeof *at);
    b->close(device);
    return status;
}

static void test_faults(void **state) {
    (void)state;
    static const char fail[] = "CVY_ASYNC_FAIL", stall[] = "CVY_ASYNC_STALL";
    assert_fails(upload_in(fail, "device=2,step=3,op=upload", 3, 0), CVY_ERR_FAILED,
                 "async:2: step 3: upload of \"check\" fails, as CVY_ASYNC_FAIL orders");
    assert_fails(upload_in(fail, "op=upload", 0, 0), CVY_ERR_FAILED, "fails, as");
    assert_fails(upload_in(fail, "step=1", 1, 0), CVY_ERR_FAILED, "fails, as");
    assert_ok(upload_in(fail, "device=1,step=3,op=upload", 3, 0));
    assert_ok(upload_in(fail, "device=2,step=4", 3, 0));
    assert_ok(upload_in(fail, "op=conv2d", 3, 0));
    assert_ok(upload_in(fail, "", 3, 0));
    assert_ok(upload_in(stall, "step=3,seconds=0.02", 3, 10));
    assert_fails(upload_in(stall, "step=3,seconds=5", 3, 0.05), CVY_ERR_LOST,
                 "async:2: step 3: upload of \"check\" was not over after 0.1 seconds");
    assert_fails(upload_in(stall, "step=3", 3, 0.05), CVY_ERR_LOST, "not over");
}

static void test_refusals(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"CVY_ASYNC_FAIL", "device"},      {"CVY_ASYNC_FAIL", "device=-1"},
        {"CVY_ASYNC_FAIL", "stage=1"},     {"CVY_ASYNC_FAIL", "seconds=1"},
        {"CVY_ASYNC_FAIL", "op="},         {"CVY_ASYNC_STALL", "seconds=x"},
        {"CVY_ASYNC_STALL", "seconds=-1"}, {"CVY_ASYNC_STALL", "step=2 op=x"},
        {"CVY_ASYNC_SEED", "x"},           {"CVY_ASYNC_SEED", "-1"},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        struct cvy_device *device = NULL;
        const struct cvy_device_spec spec = {.n_threads = 1, .n_local = 1};
        setenv(wrong[k][0], wrong[k][1], 1);
        assert_fails(cvy_backend_find("async")->open(&spec, &device), CVY_ERR_USAGE, wrong[k][0]);
        assert_null(device);
        unsetenv(wrong[k][0]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),           cmocka_unit_test(test_download_waits),
        cmocka_unit_test(test_failure_ends_all), cmocka_unit_test(test_progress_orders_nothing),
        cmocka_unit_test(test_memory_is_shut),   cmocka_unit_test(test_faults),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Whom rank 0 of a control connection lets in: strangers, liars, misfits and babblers must not disturb a run. */
#include "base/rng.h"
#include "comm/control_processes.h"
#include "comm/control_wire.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const double timeout_s = 1.0;

static int raw_connect(const char *address) {
    const char *colon = strstr(address, " 127.0.0.1:");
    assert_non_null(colon);
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(colon + strlen(" 127.0.0.1:"))),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* Was the connection ended without a byte? */
static void assert_dropped(int fd) {
    char byte;
    struct pollfd one = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&one, 1, PATIENCE_S * 1000), 1);
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    close(fd);
}

static void test_strangers(void **state) {
    (void)state;
    const double longer_s = 4;
    struct process root = {.size = 2}, other = {.rank = 1, .size = 2};
    pthread_t thread;
    char address[CVY_CONTROL_ADDRESS];
    assert_ok(cvy_control_listen(2, longer_s, address, &root.control));
    struct job job = {&root, longer_s, NULL};
    assert_ok(cvy_thread_start(&thread, "rank", begin_main, &job));
    int silent = raw_connect(address);
    int chatty = raw_connect(address);
    assert_int_equal(send(chatty, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
    assert_dropped(chatty);
    int liar = raw_connect(address); /* knows the language, not the token */
    struct cvy_control_message hello = {.type = CVY_CONTROL_HELLO, .rank = 1, .group = 2, .text = "sesame"};
    unsigned char frame[CVY_CONTROL_FRAME];
    size_t n = cvy_control_encode(&hello, frame);
    assert_int_equal(send(liar, frame, n, MSG_NOSIGNAL), n);
    assert_dropped(liar);
    char wrong[CVY_CONTROL_ADDRESS + 64];
    snprintf(wrong, sizeof wrong, "%.32s%s", "00000000000000000000000000000000", address + 32);
    assert_fails(cvy_control_connect(1, 2, 0.5, wrong, &other.control), CVY_ERR_LOST,
                 "rank 1 cannot reach rank 0 within 0.5 s at any of");
    assert_fails(cvy_control_connect(1, 3, timeout_s, address, &other.control), CVY_ERR_USAGE,
                 "rank 1 counts 3 processes, rank 0 counts 2");
    assert_fails(cvy_control_connect(1, 1, timeout_s, address, &other.control), CVY_ERR_USAGE,
                 "no rank 1 among 1");
    /* the first place is of another program, which says nothing */
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n_at = sizeof at;
    int other_program = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(other_program, (struct sockaddr *)&at, sizeof at) + listen(other_program, 4), 0);
    assert_int_equal(getsockname(other_program, (struct sockaddr *)&at, &n_at), 0);
    snprintf(wrong, sizeof wrong, "%.32s 127.0.0.1:%d%s", address, ntohs(at.sin_port), address + 32);
    assert_ok(begin(&other, longer_s, wrong));
    close(other_program);
    pthread_join(thread, NULL);
    assert_int_equal(root.error.code, CVY_OK);
    assert_dropped(silent);
    assert_int_equal(n_heard(&root) + n_heard(&other), 0);
    cvy_control_close(other.control);
    cvy_control_close(root.control);
}

/* A process that knows the token and then says anything: rank 0 may lose it, but goes on and ends in time. */
static void test_babble(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= 16; seed++) {
        struct process root = {.size = 3};
        char address[CVY_CONTROL_ADDRESS];
        unsigned char frame[CVY_CONTROL_FRAME];
        struct cvy_control_message message = {.type = CVY_CONTROL_HELLO, .rank = 1, .group = 3};
        struct cvy_rng rng;
        cvy_rng_init(&rng, seed, CVY_RNG_TEST, 0, 0);
        assert_ok(cvy_control_listen(3, 0.2, address, &root.control));
        memcpy(message.text, address, 32);
        int fd = raw_connect(address);
        for (int i = 0; i < 200; i++) {
            size_t n = cvy_control_encode(&message, frame);
            if (seed % 2 && i > 0 && cvy_rng_below(&rng, 100) == 0) /* half of them break the language, too */
                frame[cvy_rng_below(&rng, (uint32_t)n)] ^= (unsigned char)(1u << cvy_rng_below(&rng, 8));
            if (send(fd, frame, n, MSG_NOSIGNAL) < 0)
                break;
            message.type = (enum cvy_control_type)(1 + cvy_rng_below(&rng, CVY_CONTROL_MAX_TYPE));
            message.rank = cvy_rng_below(&rng, 10) ? 1 : (int32_t)cvy_rng_below(&rng, 5);
            message.group = (int32_t)cvy_rng_below(&rng, 50) - 1;
            message.text[cvy_rng_below(&rng, CVY_CONTROL_TEXT)] = (char)(1 + cvy_rng_below(&rng, 255));
        }
        assert_int_equal(begin(&root, 0.2, NULL), CVY_ERR_LOST);
        close(fd);
        cvy_control_close(root.control);
    }
}

static void test_same_rank_twice(void **state) {
    (void)state;
    struct process root = {.size = 3}, first = {.rank = 1, .size = 3}, late = {.rank = 1, .size = 3};
    char address[CVY_CONTROL_ADDRESS];
    pthread_t threads[2];
    assert_ok(cvy_control_listen(3, timeout_s, address, &root.control));
    struct job jobs[] = {{&root, timeout_s, NULL}, {&first, timeout_s, address}};
    for (int i = 0; i < 2; i++)
        assert_ok(cvy_thread_start(&threads[i], "rank", begin_main, &jobs[i]));
    pause_s(0.3); /* rank 1 is there by now; if not, its own start fails the same way */
    cvy_status status = begin(&late, timeout_s, address);
    assert_true(status == CVY_ERR_USAGE || status == CVY_ERR_LOST);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(root.error.code, CVY_ERR_LOST);
    assert_non_null(strstr(root.error.message, "rank 2 did not come"));
    assert_non_null(strstr(root.error.message, "rank 1 is here already"));
    cvy_control_close(late.control);
    cvy_control_close(first.control);
    cvy_control_close(root.control);
}

static void test_addresses(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "",
        "token",
        "0123456789abcdef0123456789abcdef",
        "0123456789abcdef0123456789abcdef ",
        "0123456789abcdef0123456789abcdef host:1",
        "0123456789abcdef0123456789abcdef 127.0.0.1",
        "0123456789abcdef0123456789abcdef 127.0.0.1:0",
        "0123456789abcdef0123456789abcdef 127.0.0.1:99999",
        "0123456789abcdef0123456789abcdef [::1:80",
        "0123456789abcdef0123456789abcdef [::1]:80 :",
        "0123456789abcdef0123456789abcdef 127.0.0.1:1  127.0.0.1:2",
    };
    struct cvy_control *control;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(cvy_control_connect(1, 2, timeout_s, wrong[i], &control), CVY_ERR_USAGE);
    char address[CVY_CONTROL_ADDRESS];
    assert_fails(cvy_control_listen(0, timeout_s, address, &control), CVY_ERR_USAGE, "0 processes");
    assert_fails(cvy_control_listen(2, 0, address, &control), CVY_ERR_USAGE, "timeout");
    assert_ok(cvy_control_listen(2, timeout_s, address, &control));
    assert_non_null(strstr(address, " 127.0.0.1:"));
    cvy_control_close(control); /* without start */
    /* nobody listens there any more */
    assert_fails(cvy_control_connect(1, 2, 0.3, address, &control), CVY_ERR_LOST, "refused");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_babble),
        cmocka_unit_test(test_same_rank_twice),
        cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Counters between threads: no wake-up is lost, deadlines and cancellation end a wait. And the log. */
#include "base/log.h"
#include "base/thread.h"
#include "cvy_test.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

struct game {
    struct cvy_counter there, back;
    _Atomic bool cancel;
    int n_rounds, plain; /* plain: handed over by the counters alone */
};

static void start_game(struct game *game, int n_rounds) {
    *game = (struct game){.n_rounds = n_rounds};
    assert_int_equal(cvy_counter_init(&game->there), CVY_OK);
    assert_int_equal(cvy_counter_init(&game->back), CVY_OK);
}

static void end_game(struct game *game) {
    cvy_counter_free(&game->there);
    cvy_counter_free(&game->back);
}

static void nap(int64_t ns) { nanosleep(&(struct timespec){.tv_nsec = ns}, NULL); }

static void *answer(void *argument) {
    struct game *game = argument;
    for (int i = 1; i <= game->n_rounds; i++) {
        if (cvy_counter_wait(&game->there, (uint64_t)i, 30, NULL, "there") != CVY_OK)
            return NULL;
        game->plain++;
        if (i % 50 == 0)
            nap(200000); /* longer than anybody spins: the other one sleeps */
        cvy_counter_add(&game->back, 1);
    }
    return game;
}

static void test_ping_pong(void **state) {
    (void)state;
    struct game game;
    pthread_t thread;
    void *result;
    start_game(&game, 2000);
    assert_int_equal(cvy_thread_start(&thread, "a name that is too long", answer, &game), CVY_OK);
    for (int i = 1; i <= game.n_rounds; i++) {
        game.plain++;
        if (i % 70 == 0)
            nap(200000);
        cvy_counter_add(&game.there, 1);
        assert_int_equal(cvy_counter_wait(&game.back, (uint64_t)i, 30, NULL, "back"), CVY_OK);
        assert_int_equal(game.plain, 2 * i);
    }
    pthread_join(thread, &result);
    assert_ptr_equal(result, &game);
    end_game(&game);
}

static void test_deadline(void **state) {
    (void)state;
    struct game game;
    start_game(&game, 0);
    cvy_counter_add(&game.there, 2);
    assert_int_equal(cvy_counter_wait(&game.there, 2, 0, NULL, "past"), CVY_OK);
    int64_t start = cvy_now_ns();
    assert_int_equal(cvy_counter_wait(&game.there, 3, 0.1, NULL, "bucket 2"), CVY_ERR_LOST);
    double waited_s = (double)(cvy_now_ns() - start) * 1e-9;
    assert_true(waited_s >= 0.1 && waited_s < 5);
    assert_string_equal(cvy_error(), "bucket 2: waited 0.1 seconds, then gave up (2 of 3 arrived)");
    assert_int_equal(cvy_counter_wait(&game.there, 3, -1, NULL, "negative"), CVY_ERR_LOST);
    end_game(&game);
}

static void *cancel_later(void *argument) {
    struct game *game = argument;
    nap(50000000);
    atomic_store(&game->cancel, true);
    cvy_counter_wake(&game->there);
    return NULL;
}

static void test_cancel(void **state) {
    (void)state;
    struct game game;
    pthread_t thread;
    start_game(&game, 0);
    assert_int_equal(cvy_thread_start(&thread, "cancel", cancel_later, &game), CVY_OK);
    int64_t start = cvy_now_ns();
    assert_int_equal(cvy_counter_wait(&game.there, 1, 60, &game.cancel, "bucket 2"), CVY_ERR_LOST);
    assert_true(cvy_now_ns() - start < 5000000000);
    assert_non_null(strstr(cvy_error(), "was cancelled"));
    pthread_join(thread, NULL);
    cvy_counter_add(&game.there, 1); /* what is reached counts, cancelled or not */
    assert_int_equal(cvy_counter_wait(&game.there, 1, 60, &game.cancel, "bucket 2"), CVY_OK);
    end_game(&game);
}

static void keep_line(void *context, cvy_log_level level, const char *line) {
    if (level == CVY_LOG_WARNING)
        strncpy(context, line, 63);
}

static void test_log(void **state) {
    (void)state;
    char line[64] = "";
    const cvy_log_sink sink = {.write = keep_line, .context = line}, none = {0};
    cvy_log(&sink, CVY_LOG_WARNING, "%d images skipped", 3);
    assert_string_equal(line, "3 images skipped");
    cvy_log(&none, CVY_LOG_WARNING, "dropped");
    cvy_log(NULL, CVY_LOG_WARNING, "dropped");
    assert_string_equal(line, "3 images skipped");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ping_pong),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

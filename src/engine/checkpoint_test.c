/* Finding checkpoints, their state file, making folders. That saving replaces a checkpoint in one step, also when
   the disk is full or the process is killed, is tested from outside by tests/cli. */
#include "base/file.h"
#include "engine/checkpoint.h"
#include "engine/manifest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char whole[] =
    "{\"epoch\": 3, \"step\": 2, \"updates\": 47, \"batch_size\": 64, \"seed\": 9, \"shuffle\": true, "
    "\"data_images\": 1437, \"data\": \"digits\", \"preparation\": \"pad=1\", \"optimizer\": \"sgd\", "
    "\"train_images\": 128, \"train_top1_count\": 5, \"train_top5_count\": 50, "
    "\"train_loss_sum\": 0.1, \"train_s\": 2.5, \"best_epoch\": 1, \"best_top1_count\": 300}";

static int enter_folder(void **state) {
    char folder[] = "/tmp/convoy-checkpoint-test-XXXXXX";
    *state = mkdtemp(folder) ? strdup(folder) : NULL;
    return *state ? chdir(*state) : -1;
}

static int leave_folder(void **state) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", (char *)*state);
    free(*state);
    return chdir("/") || system(command);
}

static void write_text(const char *path, const char *text) {
    assert_int_equal(cvy_write_file(path, text, strlen(text)), CVY_OK);
}

static void folders_with_parents(void **state) {
    (void)state;
    assert_int_equal(cvy_make_folder("a/b/c"), CVY_OK);
    assert_int_equal(cvy_make_folder("a/b/c"), CVY_OK);
    assert_int_equal(access("a/b/c", F_OK), 0);
    write_text("a/file", "x");
    assert_int_equal(cvy_make_folder("a/file"), CVY_ERR_IO);
    assert_int_equal(cvy_make_folder("a/file/below"), CVY_ERR_IO);
    assert_non_null(strstr(cvy_error(), "a/file"));
    assert_int_equal(cvy_make_folder(""), CVY_ERR_IO);
}

static void finds_itself_or_below(void **state) {
    (void)state;
    char *found;
    assert_int_equal(cvy_make_folder("run/last"), CVY_OK);
    assert_int_equal(cvy_checkpoint_find("run", "last", "state.json", &found), CVY_ERR_DATA);
    assert_non_null(strstr(cvy_error(), "last/state.json"));
    write_text("run/last/state.json", whole);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cvy_checkpoint_find(i ? "run/last" : "run", "last", "state.json", &found), CVY_OK);
        assert_string_equal(found, "run/last");
        free(found);
    }
}

static void weights_are_a_file_or_the_best(void **state) {
    (void)state;
    char *found;
    assert_int_equal(cvy_make_folder("run/best"), CVY_OK);
    assert_int_equal(cvy_weights_find("run", &found), CVY_ERR_DATA);
    assert_int_equal(cvy_weights_find("nowhere", &found), CVY_ERR_DATA);
    write_text("run/best/model.safetensors", "");
    write_text("w.safetensors", "");
    assert_int_equal(cvy_weights_find("run", &found), CVY_OK);
    assert_string_equal(found, "run/best/model.safetensors");
    free(found);
    assert_int_equal(cvy_weights_find("w.safetensors", &found), CVY_OK);
    assert_string_equal(found, "w.safetensors");
    free(found);
}

static void tidies_up_after_a_kill(void **state) {
    (void)state;
    assert_int_equal(cvy_make_folder("run/last.old"), CVY_OK); /* killed between moving aside and in place */
    assert_int_equal(cvy_make_folder("run/last.new"), CVY_OK);
    write_text("run/last.old/state.json", whole);
    write_text("run/last.new/model.safetensors.tmp", "half");
    cvy_checkpoint_tidy("run", "last");
    assert_int_equal(access("run/last/state.json", F_OK), 0);
    assert_int_equal(access("run/last.old", F_OK), -1);
    assert_int_equal(access("run/last.new", F_OK), -1);
    assert_int_equal(cvy_make_folder("run/last.old"), CVY_OK); /* killed before the old one was removed */
    write_text("run/last.old/state.json", "old");
    cvy_checkpoint_tidy("run", "last");
    assert_int_equal(access("run/last/state.json", F_OK), 0);
    assert_int_equal(access("run/last.old", F_OK), -1);
    cvy_checkpoint_tidy("nowhere", "last");
}

/* NAME as a checkpoint of this version: its only file holds `text`. */
static void make_whole(const char *folder, const char *text) {
    char path[64];
    const char *const names[] = {"state.json", "optimizer.safetensors"};
    assert_int_equal(cvy_make_folder(folder), CVY_OK);
    snprintf(path, sizeof path, "%s/state.json", folder);
    write_text(path, text);
    assert_int_equal(cvy_manifest_write(folder, names, 2), CVY_OK);
}

static void expect_last(const char *want) {
    char *text;
    size_t n;
    assert_int_equal(cvy_read_file("run/last/state.json", 100, &text, &n), CVY_OK);
    assert_string_equal(text, want);
    free(text);
    assert_int_equal(access("run/last.old", F_OK), -1);
    assert_int_equal(access("run/last.new", F_OK), -1);
}

/* Where folders cannot be exchanged, a kill may leave any of the three, and the disk may have lost what was last/. */
static void a_whole_one_takes_the_place(void **state) {
    (void)state;
    make_whole("run/last.new", "new"); /* moved aside, not yet replaced: that one was known to be good */
    make_whole("run/last.old", "old");
    cvy_checkpoint_tidy("run", "last");
    expect_last("old");
    make_whole("run/last.new", "new"); /* the one in its place is whole */
    cvy_checkpoint_tidy("run", "last");
    expect_last("old");
    make_whole("run/last.new", "new"); /* it is damaged */
    write_text("run/last/state.json", "odl");
    cvy_checkpoint_tidy("run", "last");
    expect_last("new");
    make_whole("run/last.new", "newer"); /* all are damaged: the one with the name keeps it */
    write_text("run/last.new/state.json", "n");
    write_text("run/last/state.json", "n");
    cvy_checkpoint_tidy("run", "last");
    expect_last("n");
}

static void manifest_says_what_is_damaged(void **state) {
    (void)state;
    bool is_there;
    make_whole("c", "text");
    assert_int_equal(cvy_checkpoint_verify("c", &is_there), CVY_OK);
    assert_true(is_there);
    const char *const texts[] = {"texT", "tex"}, *const reasons[] = {"its xxh3 is", "it has 3 bytes, 4 were"};
    for (int i = 0; i < 2; i++) {
        write_text("c/state.json", texts[i]);
        assert_int_equal(cvy_checkpoint_verify("c", &is_there), CVY_ERR_DATA);
        assert_non_null(strstr(cvy_error(), "c/state.json: is damaged: "));
        assert_non_null(strstr(cvy_error(), reasons[i]));
    }
    unlink("c/state.json");
    assert_int_equal(cvy_checkpoint_verify("c", &is_there), CVY_ERR_DATA);
    assert_non_null(strstr(cvy_error(), "c/state.json"));
    write_text("c/state.json", "text");
    assert_int_equal(cvy_manifest_verify("c", "state.json", &is_there), CVY_OK);
    assert_int_equal(cvy_manifest_verify("c", "model.safetensors", &is_there), CVY_ERR_DATA);
    static const char outside[] =
        "{\"version\": 1, \"files\": {\"../c/state.json\": {\"bytes\": 4, \"xxh3\": \"0\"}}}";
    const char *const broken[] = {"",
                                  "{",
                                  "[]",
                                  "{\"version\": 1, \"files\": {}}",
                                  "{\"version\": 2, \"files\": {\"a\": {}}}",
                                  "{\"version\": 1, \"files\": {\"state.json\": 4}}",
                                  outside};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        write_text("c/manifest.json", broken[i]);
        assert_int_equal(cvy_checkpoint_verify("c", &is_there), CVY_ERR_DATA);
        assert_true(is_there);
        assert_non_null(strstr(cvy_error(), "c/manifest.json"));
    }
    unlink("c/manifest.json");
    assert_int_equal(cvy_checkpoint_verify("c", &is_there), CVY_OK);
    assert_false(is_there);
}

static void state_is_read(void **state) {
    (void)state;
    struct cvy_train_state s;
    write_text("state.json", whole);
    assert_int_equal(cvy_checkpoint_state(".", &s), CVY_OK);
    assert_true(s.epoch == 3 && s.step == 2 && s.n_updates == 47 && s.batch_size == 64 && s.seed == 9);
    assert_string_equal(s.optimizer, "sgd");
    assert_string_equal(s.data, "digits");
    assert_string_equal(s.preparation, "pad=1");
    assert_true(s.shuffle && s.n_images == 1437);
    assert_true(s.train.n == 128 && s.train.top1 == 5 && s.train.top5 == 50 && s.train.loss_sum == 0.1);
    assert_true(s.train_s == 2.5 && s.best_epoch == 1 && s.best_top1 == 300);
}

static void broken_state_is_refused(void **state) {
    (void)state;
    struct cvy_train_state s;
    const char *texts[] = {"", "{", "[]", "{\"epoch\": 3}", "{\"epoch\": \"three\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        write_text("state.json", texts[i]);
        assert_int_equal(cvy_checkpoint_state(".", &s), CVY_ERR_DATA);
        assert_non_null(strstr(cvy_error(), "state.json"));
    }
    char negative[sizeof whole];
    memcpy(negative, whole, sizeof whole);
    strstr(negative, "\"step\": 2")[7] = '-';
    write_text("state.json", negative);
    assert_int_equal(cvy_checkpoint_state(".", &s), CVY_ERR_DATA);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter_folder, leave_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(folders_with_parents),   TEST(finds_itself_or_below),       TEST(weights_are_a_file_or_the_best),
        TEST(tidies_up_after_a_kill), TEST(a_whole_one_takes_the_place), TEST(manifest_says_what_is_damaged),
        TEST(state_is_read),          TEST(broken_state_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

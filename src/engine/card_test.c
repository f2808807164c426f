/* What a weights file says about itself: read back, refused when it lies, held against a task. */
#include "data/data.h"
#include "engine/card.h"
#include "graph/safetensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct cvy_safetensors_pair good[] = {
    {"format", "pt"},
    {"convoy", "0.1.0"},
    {"model", "lenet5"},
    {"num_classes", "3"},
    {"classes", "[\"cat\",\"dog\"]"},
    {"input", "1x8x8"},
    {"resize", "0"},
    {"mean", "0.100000001"},
    {"std", "0.5"},
    {"shards", "4"},
    {"threads_per_device", "2"},
    {"conv_algo", "auto"},
};
enum { N = sizeof good / sizeof good[0] };

/* A file with this metadata, where the entry `key` has another value (NULL: is left out); its card. */
static cvy_status read_with(const char *key, const char *value, struct cvy_card *out) {
    struct cvy_safetensors_pair pairs[N];
    char path[64];
    size_t n = 0;
    for (size_t i = 0; i < N; i++) {
        bool is_changed = key && !strcmp(good[i].key, key);
        if (!is_changed || value)
            pairs[n++] = (struct cvy_safetensors_pair){good[i].key, is_changed ? value : good[i].value};
    }
    snprintf(path, sizeof path, "/tmp/convoy-card-test-%d.safetensors", (int)getpid());
    assert_int_equal(cvy_safetensors_write(path, NULL, 0, pairs, n), CVY_OK);
    cvy_status status = cvy_card_read(path, out);
    unlink(path);
    return status;
}

static void reads_every_entry(void **state) {
    (void)state;
    struct cvy_card card;
    assert_int_equal(read_with(NULL, NULL, &card), CVY_OK);
    assert_string_equal(card.model, "lenet5");
    assert_int_equal(card.num_classes, 3);
    assert_int_equal(card.n_names, 2);
    assert_string_equal(card.names[1], "dog");
    assert_true(card.input[0] == 1 && card.input[1] == 8 && card.input[2] == 8);
    assert_true(card.mean[0] == 0.1F && card.std[0] == 0.5F);
    assert_true(card.shards == 4 && card.threads == 2);
    assert_string_equal(card.conv_algo, "auto");
    cvy_card_free(&card);
}

static void foreign_file_says_nothing(void **state) {
    (void)state;
    struct cvy_card card;
    assert_int_equal(read_with("convoy", NULL, &card), CVY_OK);
    assert_null(card.model);
    cvy_card_free(&card);
}

static void refuses_lies(void **state) {
    (void)state;
    const struct {
        const char *key, *value;
    } cases[] = {
        {"num_classes", NULL},
        {"num_classes", "0"},
        {"num_classes", "x"},
        {"num_classes", "99999999999999999999"},
        {"num_classes", "1"}, /* fewer than there are names */
        {"classes", "cat"},
        {"classes", "[1]"},
        {"classes", "{}"},
        {"input", "1x8"},
        {"input", "1x8x8x8"},
        {"input", "0x8x8"},
        {"input", "9x8x8"},
        {"mean", ""},
        {"mean", "1,2"},
        {"mean", "nan"},
        {"std", "0.5,"},
        {"shards", "0"},
        {"threads_per_device", "-1"},
        {"resize", "1e3"},
        {"conv_algo", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cvy_card card;
        if (read_with(cases[i].key, cases[i].value, &card) != CVY_ERR_DATA)
            fail_msg("%s = %s was taken", cases[i].key, cases[i].value ? cases[i].value : "(absent)");
        bool is_named = strstr(cvy_error(), cases[i].key) || strstr(cvy_error(), "classes");
        assert_true(is_named && strstr(cvy_error(), "convoy-card-test"));
    }
}

/* A task with nothing but what the check looks at. */
static void fits(const struct cvy_card *card, const char *model, int64_t num_classes, const char *second,
                 const char *says) {
    char *names[] = {"cat", (char *)(uintptr_t)second};
    struct cvy_dataset data = {.spec = "set", .n_classes = 2, .class_names = names};
    struct cvy_task task = {.options = {.kind = CVY_TASK_EVAL, .model = model, .num_classes = num_classes},
                            .val = &data};
    cvy_status status = cvy_card_check(card, &task, "w.safetensors");
    assert_int_equal(status, says ? CVY_ERR_DATA : CVY_OK);
    if (says && !strstr(cvy_error(), says))
        fail_msg("\"%s\" lacks \"%s\"", cvy_error(), says);
}

static void names_the_difference(void **state) {
    (void)state;
    struct cvy_card card;
    assert_int_equal(read_with(NULL, NULL, &card), CVY_OK);
    fits(&card, "lenet5", 3, "dog", NULL);
    fits(&card, "resnet20", 3, "dog", "holds the model 'lenet5', not 'resnet20'");
    fits(&card, "lenet5", 4, "dog", "a model of 3 classes, not 4");
    fits(&card, "lenet5", 3, "owl", "class 1 is called 'dog' there, but 'owl'");
    const struct cvy_card empty = {.model = NULL};
    fits(&empty, "resnet20", 7, "owl", NULL); /* the tensors will tell */
    cvy_card_free(&card);
}

static void completes_what_is_open(void **state) {
    (void)state;
    struct cvy_card card;
    assert_int_equal(read_with(NULL, NULL, &card), CVY_OK);
    struct cvy_task_options open = {.num_classes = 0},
                            said = {.model = "resnet20", .num_classes = 7, .input = {3, 9, 9}};
    cvy_card_complete(&card, &open);
    assert_string_equal(open.model, "lenet5");
    assert_true(open.num_classes == 3 && open.input[2] == 8 && open.loader.has_mean_std &&
                open.loader.std[0] == 0.5F);
    cvy_card_complete(&card, &said);
    assert_string_equal(said.model, "resnet20");
    assert_true(said.num_classes == 7 && said.input[2] == 9);
    cvy_card_free(&card);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_entry),      cmocka_unit_test(foreign_file_says_nothing),
        cmocka_unit_test(refuses_lies),           cmocka_unit_test(names_the_difference),
        cmocka_unit_test(completes_what_is_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

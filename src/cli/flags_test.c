/* Flag tables: every type, letters, negation, ranges, nearest names, the configuration file, help. */
#include "base/file.h"
#include "cli/flags.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct fields {
    const char *name, *kind;
    int64_t count;
    double rate, unset;
    int on, unsaid;
    int64_t size[2], shape[3];
    struct flag_channels mean;
    const char *secret;
};

static void kinds(struct flag_names *out) { *out = (struct flag_names){.name = {"apple", "pear"}, .n = 2}; }

#define AT(field) .offset = offsetof(struct fields, field)
static const struct flag flags[] = {
    {.name = "name", .type = FLAG_TEXT, AT(name), .help = "a name"},
    {.name = "kind", .type = FLAG_TEXT, AT(kind), .help = "a fruit", .choices = kinds, .initial = "pear"},
    {.name = "count",
     .type = FLAG_INT,
     AT(count),
     .help = "how many",
     .letter = 'c',
     .initial = "3",
     .min = 1,
     .max = 9},
    {.name = "rate",
     .type = FLAG_FLOAT,
     AT(rate),
     .help = "how fast",
     .alias = "speed",
     .initial = "0.5",
     .max = INFINITY},
    {.name = "unset", .type = FLAG_FLOAT, AT(unset), .help = "no default"},
    {.name = "on", .type = FLAG_SWITCH, AT(on), .help = "a switch", .initial = "false"},
    {.name = "unsaid", .type = FLAG_SWITCH, AT(unsaid), .help = "a switch without default"},
    {.name = "size", .type = FLAG_SIZE, AT(size), .help = "a size"},
    {.name = "shape", .type = FLAG_SHAPE, AT(shape), .help = "a shape"},
    {.name = "mean", .type = FLAG_CHANNELS, AT(mean), .help = "channels"},
    {.name = "secret", .type = FLAG_TEXT, AT(secret), .help = "stays here", .is_not_kept = true},
    {.name = "config", .type = FLAG_TEXT, AT(secret), .help = "file", .is_not_kept = true},
};
static const struct flag_group group = {.title = "All", .flags = flags, .n = sizeof flags / sizeof flags[0]};
static const struct flag_group *const groups[] = {&group, NULL};

/* Parses the NULL-terminated arguments into fresh fields. */
static cvy_status parse(struct fields *fields, struct flag_values *values, ...) {
    char *argv[32];
    int argc = 0;
    va_list args;
    va_start(args, values);
    while ((argv[argc] = va_arg(args, char *)))
        argc++;
    va_end(args);
    *fields = (struct fields){.count = 0};
    *values = (struct flag_values){.options = fields, .groups = groups};
    return flags_parse(values, argc, argv);
}

static void defaults(void **state) {
    (void)state;
    struct fields f;
    struct flag_values v;
    assert_int_equal(parse(&f, &v, NULL), CVY_OK);
    assert_null(f.name);
    assert_string_equal(f.kind, "pear");
    assert_int_equal(f.count, 3);
    assert_true(f.rate == 0.5 && isnan(f.unset));
    assert_int_equal(f.on, 0);
    assert_int_equal(f.unsaid, -1);
    assert_false(flags_given(&v, "kind"));
    flags_free(&v);
}

static void every_type(void **state) {
    (void)state;
    struct fields f;
    struct flag_values v;
    assert_int_equal(parse(&f, &v, "--name=a=b", "--kind", "apple", "-c7", "rest", "--speed", "1e-3", "--on",
                           "--no-unsaid", "--size", "8", "--shape=3x32x16", "--mean", "0.5,-1", "--",
                           "--name", NULL),
                     CVY_OK);
    assert_string_equal(f.name, "a=b");
    assert_string_equal(f.kind, "apple");
    assert_int_equal(f.count, 7);
    assert_true(f.rate == 1e-3);
    assert_true(f.on == 1 && f.unsaid == 0);
    assert_true(f.size[0] == 8 && f.size[1] == 8);
    assert_true(f.shape[0] == 3 && f.shape[1] == 32 && f.shape[2] == 16);
    assert_true(f.mean.n == 2 && f.mean.value[0] == 0.5F && f.mean.value[1] == -1);
    assert_true(flags_given(&v, "rate") && flags_given(&v, "speed"));
    assert_int_equal(v.rest.n, 2);
    assert_string_equal(v.rest.data[0], "rest");
    assert_string_equal(v.rest.data[1], "--name");
    flags_free(&v);
}

static void refusals(void **state) {
    (void)state;
    const struct {
        const char *flag, *value, *says;
    } cases[] = {
        {"--nmae", "x", "unknown flag --nmae; did you mean --name?"},
        {"--sped=1", NULL, "unknown flag --sped; did you mean --speed?"},
        {"--zzzzzz", NULL, "unknown flag --zzzzzz; --help lists the flags"},
        {"-x", NULL, "unknown flag -x"},
        {"--no-name", NULL, "unknown flag --no-name"}, /* only switches can be denied */
        {"--no-on=true", NULL, "unknown flag --no-on"},
        {"--name", NULL, "--name: needs a value"},
        {"--kind", "aple", "did you mean apple?"},
        {"--count", "0", "--count 0: must be from 1 to 9"},
        {"--count", "10", "--count 10: must be from 1 to 9"},
        {"--count", "2.5", "--count 2.5: must be a whole number"},
        {"--count", "18446744073709551615",
         "--count 18446744073709551615: must be a whole number below 2^63"},
        {"--rate", "-1", "--rate -1: must be at least 0"},
        {"--rate", "nan", "--rate nan: must be a finite number"},
        {"--rate", "inf", "--rate inf: must be a finite number"},
        {"--rate", "", "must be a finite number"},
        {"--on=maybe", NULL, "must be true or false"},
        {"--size", "1x2x3", "--size 1x2x3: must be like 224 or 224x200"},
        {"--size", "0", "--size 0"},
        {"--shape", "3x32", "--shape 3x32: must be CxHxW"},
        {"--shape", "3xx32", "--shape 3xx32"},
        {"--mean", "1,2,3,4,5", "--mean 1,2,3,4,5"},
        {"--mean", "1,", "--mean 1,"},
        {"--config", "/no/such/file", "/no/such/file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fields f;
        struct flag_values v;
        assert_int_equal(parse(&f, &v, cases[i].flag, cases[i].value, NULL), CVY_ERR_USAGE);
        if (!strstr(cvy_error(), cases[i].says))
            fail_msg("%s %s: \"%s\" lacks \"%s\"", cases[i].flag, cases[i].value ? cases[i].value : "",
                     cvy_error(), cases[i].says);
        flags_free(&v);
    }
}

static void temporary(char path[64]) { snprintf(path, 64, "/tmp/convoy-flags-test-%d.json", (int)getpid()); }

static void write_text(const char *path, const char *text) {
    assert_int_equal(cvy_write_file(path, text, strlen(text)), CVY_OK);
}

static void configuration_round_trip(void **state) {
    (void)state;
    char path[64];
    temporary(path);
    struct fields f, g;
    struct flag_values v, w;
    assert_int_equal(parse(&f, &v, "--name", "n", "--count=8", "--rate", "0.1234567890123456789", "--no-on",
                           "--size", "2x3", "--shape", "1x2x3", "--mean", "0.1,0.7", "--secret", "s", NULL),
                     CVY_OK);
    json_t *root = json_pack("{s:o}", "flags", flags_to_json(&v));
    char *text = json_dumps(root, FLAGS_JSON);
    json_decref(root);
    assert_non_null(text);
    assert_null(strstr(text, "secret"));
    assert_null(strstr(text, "unset")); /* what has no value is not kept */
    write_text(path, text);
    assert_int_equal(parse(&g, &w, "--config", path, "--count", "9", NULL), CVY_OK);
    assert_string_equal(g.name, "n");
    assert_int_equal(g.count, 9); /* the command line wins */
    assert_true(g.rate == f.rate && g.on == 0 && g.unsaid == -1 && isnan(g.unset));
    assert_memory_equal(g.size, f.size, sizeof g.size);
    assert_memory_equal(g.shape, f.shape, sizeof g.shape);
    assert_memory_equal(g.mean.value, f.mean.value, 2 * sizeof(float));
    assert_true(flags_given(&w, "count") && !flags_given(&w, "name"));
    free(text);
    flags_free(&v);
    flags_free(&w);
    unlink(path);
}

static void configuration_refusals(void **state) {
    (void)state;
    char path[64];
    temporary(path);
    const struct {
        const char *text, *says;
    } cases[] = {
        {"{\"nmae\": 1}", ".json: unknown flag nmae; did you mean --name?"},
        {"{\"count\": 100}", "--count 100: must be from 1 to 9"},
        {"{\"count\": [1]}", "\"count\" must be a text, a number, true or false"},
        {"{\"count\": 1,\n ", "line 2"},
        {"[1]", "must hold an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fields f;
        struct flag_values v;
        write_text(path, cases[i].text);
        assert_int_equal(parse(&f, &v, "--config", path, NULL), CVY_ERR_USAGE);
        if (!strstr(cvy_error(), cases[i].says))
            fail_msg("%s: \"%s\" lacks \"%s\"", cases[i].text, cvy_error(), cases[i].says);
        flags_free(&v);
    }
    unlink(path);
}

static void help_names_every_flag(void **state) {
    (void)state;
    struct cvy_text text = {0};
    flags_help(groups, &text);
    for (size_t i = 0; i < group.n; i++)
        assert_non_null(strstr(text.data, flags[i].name));
    assert_non_null(strstr(text.data, "-c, --count N"));
    assert_non_null(strstr(text.data, "(1 to 9) [3]"));
    assert_non_null(strstr(text.data, "a fruit: apple, pear [pear]"));
    assert_non_null(strstr(text.data, "--[no-]unsaid"));
    assert_null(strstr(text.data, "--[no-]on"));
    cvy_text_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(every_type),
        cmocka_unit_test(refusals),
        cmocka_unit_test(configuration_round_trip),
        cmocka_unit_test(configuration_refusals),
        cmocka_unit_test(help_names_every_flag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

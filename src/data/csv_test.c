/* csv:FILE on lists made here; the images need not be there, since they are opened when they are read. */
#include "data/csv_rows.h"

#include "data/data_fixture.h"

/* "class:path class:path …", paths below the root. */
static void expect_samples(const char *list, cvy_split split, const char *expected) {
    put("list.csv", list, strlen(list));
    struct cvy_dataset *dataset = open_ok_below("csv", "list.csv", split);
    char found[1024] = "";
    for (int64_t i = 0; i < cvy_dataset_size(dataset); i++) {
        int64_t label;
        size_t n = strlen(found);
        const char *path = dataset->format->path(dataset, i);
        assert_int_equal(cvy_dataset_label(dataset, i, &label), CVY_OK);
        snprintf(found + n, sizeof found - n, "%s%s:%s", i ? " " : "", cvy_dataset_class_name(dataset, label),
                 strncmp(path, root, strlen(root)) == 0 ? path + strlen(root) + 1 : path);
    }
    assert_string_equal(found, expected);
    cvy_dataset_free(dataset);
}

static void refuse(const char *list, size_t n_bytes, cvy_split split, const char *part) {
    put("list.csv", list, n_bytes);
    expect_refused_below("csv", "list.csv", split, part);
}

static void labels_are_names_or_numbers(void **state) {
    (void)state;
    expect_samples("b/1.jpg,dog\na/2.png,cat\n/x/3.jpg,dog", CVY_SPLIT_TRAIN,
                   "dog:b/1.jpg cat:a/2.png dog:/x/3.jpg");
    expect_samples("b/1.jpg,2\r\na/2.png,0\r\n", CVY_SPLIT_TRAIN, "2:b/1.jpg 0:a/2.png");
    struct cvy_dataset *dataset = open_ok_below("csv", "list.csv", CVY_SPLIT_TRAIN);
    assert_int_equal(cvy_dataset_classes(dataset), 3);
    cvy_dataset_free(dataset);
    expect_samples("1.jpg,2\n2.jpg,x\n", CVY_SPLIT_TRAIN,
                   "2:1.jpg x:2.jpg"); /* one name makes all of them names */
}

static void columns_may_be_named(void **state) {
    (void)state;
    static const char list[] =
        "\xEF\xBB\xBF"
        "id,Class,split,path\n7,cat,train,1.jpg\n8,dog,val,2.jpg\n\n9,cat,test,3.jpg\n";
    expect_samples(list, CVY_SPLIT_TRAIN, "cat:1.jpg");
    expect_samples(list, CVY_SPLIT_VAL, "dog:2.jpg cat:3.jpg");
}

static void fields_may_be_quoted(void **state) {
    (void)state;
    expect_samples("\"a, \"\"b\"\"\n.jpg\",\"the \"\"cat\"\"\"\n2.jpg,\"\"\"\"", CVY_SPLIT_TRAIN,
                   "the \"cat\":a, \"b\"\n.jpg \":2.jpg");
}

static void every_tenth_is_held_out(void **state) {
    (void)state;
    char list[512] = "";
    for (int i = 0; i < 21; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%d.jpg,%s\n", i, i % 2 ? "a" : "b");
    expect_samples(list, CVY_SPLIT_VAL, "b:18.jpg a:19.jpg");
    struct cvy_dataset *train = open_ok_below("csv", "list.csv", CVY_SPLIT_TRAIN);
    assert_int_equal(cvy_dataset_size(train), 19);
    cvy_dataset_free(train);
}

static void bad_lists_are_named_by_line(void **state) {
    (void)state;
#define REFUSE(list, part) refuse(list, sizeof list - 1, CVY_SPLIT_TRAIN, part)
    REFUSE("", "list.csv: holds no rows");
    REFUSE("path,label\n", "list.csv: holds no rows");
    REFUSE("1.jpg,a\n\n2.jpg\n", "list.csv: line 3: 1 field, a path and a label are needed");
    REFUSE("1.jpg,a\n,b\n", "list.csv: line 2: the path is empty");
    REFUSE("1.jpg,a\n2.jpg,\n", "list.csv: line 2: the label is empty");
    REFUSE("1.jpg,\xFF\n", "list.csv: line 1: the label is not UTF-8");
    REFUSE("\"a\nb\",x\n\"1.jpg,a\n", "list.csv: line 3: a quote is never closed");
    REFUSE("\"1.jpg\"x,a\n", "list.csv: line 1: text follows a closing quote");
    REFUSE("1\".jpg,a\n", "list.csv: line 1: a quote within a field");
    REFUSE("1.jpg,a\n2.jpg\0,b\n", "list.csv: line 2: a zero byte");
    REFUSE("\"1.jpg\0\",b\n", "list.csv: line 1: a zero byte");
    REFUSE("path,label,split\n1.jpg,a,dev\n", "list.csv: line 2: split 'dev': there are train and val");
    REFUSE("path,label,split\n1.jpg,a,val\n", "list.csv: no row has the split train");
    refuse("1.jpg,a\n", 8, CVY_SPLIT_VAL, "list.csv: no class has 10 images");
    char many[256];
    memset(many, ',', sizeof many);
    refuse(many, sizeof many, CVY_SPLIT_TRAIN, "list.csv: line 1: more than 64 fields");
    expect_refused_below("csv", "absent.csv", CVY_SPLIT_TRAIN, "absent.csv: ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(labels_are_names_or_numbers), TEST(columns_may_be_named),        TEST(fields_may_be_quoted),
        TEST(every_tenth_is_held_out),     TEST(bad_lists_are_named_by_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

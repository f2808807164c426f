/* tar:GLOB on archives that are made here, member by member. */
#include "data/data_fixture.h"
#include "data/tar_index.h"

#include <sys/stat.h>
#include <unistd.h>

static unsigned char archive[1 << 16];
static size_t n_archive;

static void begin(void) { n_archive = 0; }

static void add(char type, const char *name, const void *bytes, size_t n_bytes) {
    unsigned char *header = archive + n_archive;
    unsigned sum = 0;
    memset(header, 0, 512);
    snprintf((char *)header, 100, "%s", name);
    snprintf((char *)header + 100, 8, "0000644");
    snprintf((char *)header + 124, 12, "%011o", (unsigned)n_bytes);
    header[156] = (unsigned char)type;
    snprintf((char *)header + 257, 6, "ustar");
    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
    n_archive += 512;
    memset(archive + n_archive, 0, (n_bytes + 511) / 512 * 512);
    memcpy(archive + n_archive, bytes, n_bytes);
    n_archive += (n_bytes + 511) / 512 * 512;
}

static void add_file(const char *name, const char *text) { add('0', name, text, strlen(text)); }

static void end(const char *name) {
    memset(archive + n_archive, 0, 1024);
    put(name, archive, n_archive + 1024);
}

/* "class:bytes class:bytes …" */
static void expect(const char *pattern, cvy_split split, const char *expected) {
    struct cvy_dataset *dataset = open_ok_below("tar", pattern, split);
    char found[1024] = "";
    for (int64_t i = 0; i < cvy_dataset_size(dataset); i++) {
        int64_t label;
        char *bytes;
        size_t n = strlen(found), n_bytes;
        assert_int_equal(cvy_dataset_label(dataset, i, &label), CVY_OK);
        assert_int_equal(dataset->format->encoded(dataset, i, &bytes, &n_bytes), CVY_OK);
        snprintf(found + n, sizeof found - n, "%s%s:%.*s", i ? " " : "",
                 cvy_dataset_class_name(dataset, label), (int)n_bytes, bytes);
        free(bytes);
    }
    assert_string_equal(found, expected);
    cvy_dataset_free(dataset);
}

/* With a validation set of the same shards nothing is held out. */
static void expect_all(const char *name, const char *expected) {
    char pattern[256];
    snprintf(pattern, sizeof pattern, "%s,val=%s/%s", name, root, name);
    expect(pattern, CVY_SPLIT_TRAIN, expected);
    expect(pattern, CVY_SPLIT_TRAIN, expected); /* from the kept index */
}

static void folders_are_classes(void **state) {
    (void)state;
    begin();
    add('5', "./", "", 0);
    add('5', "./dog/", "", 0);
    add_file("./dog/1.JPG", "d1");
    add_file("./dog/notes.txt", "no image");
    add_file("./dog/.hidden.jpg", "no image");
    add('2', "./dog/link.jpg", "", 0);
    add_file("x/cat/1.png", "c1");
    add_file("x/cat/1.webp", "c2");
    end("a.tar");
    expect_all("a.tar", "dog:d1 cat:c1 cat:c2");
}

static void labels_lie_beside_the_images(void **state) {
    (void)state;
    begin();
    add_file("x/1.jpg", "a");
    add_file("x/1.cls", "2\n");
    add_file("x/2.cls", "0"); /* before its image */
    add_file("x/2.json", "{}");
    add_file("x/2.jpeg", "b");
    end("n.tar");
    expect_all("n.tar", "2:a 0:b");
    begin();
    add_file("1.jpg", "a");
    add_file("1.cls", "zebra");
    add_file("2.jpg", "b");
    add_file("2.cls", " 7 ");
    end("m.tar");
    expect_all("m.tar", "zebra:a 7:b"); /* one name makes all of them names */
    begin();
    add_file(CVY_TAR_CLASSES, "zebra\nant\nbee\n");
    add_file("1.jpg", "a");
    add_file("1.cls", "2");
    add_file("2.jpg", "b");
    add_file("2.cls", "ant");
    end("l.tar");
    expect_all("l.tar", "bee:a ant:b");
}

static void names_may_be_long(void **state) {
    (void)state;
    char fill[293], name[301], pax[400];
    memset(fill, 'n', sizeof fill - 1);
    fill[sizeof fill - 1] = '\0';
    snprintf(name, sizeof name, "ant/%s.jpg", fill);
    begin();
    add('L', "././@LongLink", name, 301);
    add_file("short", "gnu");
    add('g', "pax_global_header", "12 a=bcdefg\n", 12);
    int n = snprintf(pax, sizeof pax, "17 comment=hello\n310 path=bee/%s.jpg\n", fill);
    add('x', "PaxHeaders/1", pax, (size_t)n);
    add_file("short", "pax");
    end("a.tar");
    expect_all("a.tar", "ant:gnu bee:pax");
}

static void shards_follow_each_other(void **state) {
    (void)state;
    char name[64];
    for (int s = 1; s >= 0; s--) {
        begin();
        for (int i = 0; i < 11; i++) {
            snprintf(name, sizeof name, "%s/%d.png", i % 2 ? "a" : "b", i);
            add_file(name, s ? "x" : "y");
        }
        snprintf(name, sizeof name, "s-%d.tar", s);
        end(name);
    }
    expect("s-*.tar", CVY_SPLIT_VAL, "b:x a:x"); /* the tenth of each class, as in the other formats */
    struct cvy_dataset *train = open_ok_below("tar", "s-*.tar", CVY_SPLIT_TRAIN);
    assert_int_equal(cvy_dataset_size(train), 20);
    cvy_dataset_free(train);
}

/* A stale index and a broken one are made anew, without a word; one that cannot be written is not needed. */
static void the_kept_index_is_checked(void **state) {
    (void)state;
    char index[128];
    struct stat info;
    snprintf(index, sizeof index, "%s/a.tar.index", root);
    begin();
    add_file("a/1.jpg", "1");
    end("a.tar");
    expect_all("a.tar", "a:1");
    assert_int_equal(stat(index, &info), 0);
    struct cvy_dataset *dataset = open_ok_below("tar", "a.tar,val=x", CVY_SPLIT_TRAIN);
    begin();
    add_file("a/1.jpg", "1");
    add_file("b/1.jpg", "2");
    end("a.tar");
    char *bytes;
    size_t n_bytes;
    assert_int_equal(dataset->format->encoded(dataset, 0, &bytes, &n_bytes), CVY_ERR_DATA);
    assert_non_null(strstr(cvy_error(), "was changed since it was opened"));
    cvy_dataset_free(dataset);
    expect_all("a.tar", "a:1 b:2");
    assert_int_equal(cvy_read_file(index, 1 << 20, &bytes, &n_bytes), CVY_OK);
    bytes[n_bytes / 2] ^= 1;
    put("a.tar.index", bytes, n_bytes);
    free(bytes);
    expect_all("a.tar", "a:1 b:2");
    assert_int_equal(unlink(index), 0);
    assert_int_equal(mkdir(index, 0777), 0); /* in its way */
    expect_all("a.tar", "a:1 b:2");
}

static void bad_archives_are_named(void **state) {
    (void)state;
    const cvy_split train = CVY_SPLIT_TRAIN, val = CVY_SPLIT_VAL;
    char pattern[256];
    expect_refused_below("tar", "none-*.tar", train, "no file matches");
    put("text.tar", archive + 1, 700);
    memset(archive, 'x', 1024);
    put("text.tar", archive, 1024);
    expect_refused_below("tar", "text.tar", train, "text.tar: byte 0: no header of a tar archive");
    put("text.tar", archive, 100);
    expect_refused_below("tar", "text.tar", train, "it ends within a header");
    put("text.tar", archive, 0);
    expect_refused_below("tar", "text.tar", train, "it ends without its end mark");
    begin();
    add_file("a/1.png", "1");
    add_file("a/2.png", "2");
    put("text.tar", archive, 1024); /* whole members, but not all of them */
    expect_refused_below("tar", "text.tar", train,
                         "text.tar: byte 1024: the archive is cut off: it ends without its end mark");
    begin();
    add_file("a/1.jpg", "1");
    put("cut.tar", archive, 512);
    expect_refused_below("tar", "cut.tar", train, "it ends within this member");
    end("a.tar");
    expect_refused_below("tar", "a.tar", val, "no class has 10 images");
    begin();
    add_file("b/2.jpg", "1");
    end("b.tar");
    snprintf(pattern, sizeof pattern, "a.tar,val=%s/b.tar", root);
    expect_refused_below("tar", pattern, val, "b/2.jpg: 'b' is none of the classes of the training set");
    begin();
    add_file("2.jpg", "1");
    end("c.tar");
    expect_refused_below("tar", "c.tar", train, "2.jpg: has neither a .cls nor a folder");
    begin();
    add_file(CVY_TAR_CLASSES, "a\na\n");
    add_file("a/2.jpg", "1");
    end("d.tar");
    expect_refused_below("tar", "d.tar", train, "names the class 'a' twice");
    begin();
    add('x', "p", "9 path=a\nz", 10);
    end("e.tar");
    expect_refused_below("tar", "e.tar", train, "byte 0: a broken record of a pax header");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(folders_are_classes),      TEST(labels_lie_beside_the_images), TEST(names_may_be_long),
        TEST(shards_follow_each_other), TEST(the_kept_index_is_checked),    TEST(bad_archives_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

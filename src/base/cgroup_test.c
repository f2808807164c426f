/* Limits read from folders that look like /proc and /sys/fs/cgroup. */
#include "base/cgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_FILES = 6 };

struct file {
    const char *path, *text;
};

/* A folder per case, with all that the files need; gone afterwards. */
struct tree {
    char root[64];
    char made[64][256]; /* files and folders, in the order in which they were made */
    int n;
};

static void make_folders(struct tree *tree, char *path) {
    for (char *slash = strchr(path + strlen(tree->root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(path, 0700) == 0)
            strcpy(tree->made[tree->n++], path);
        *slash = '/';
    }
}

static void add_file(struct tree *tree, const char *path, const char *text) {
    char full[256];
    assert_true(snprintf(full, sizeof full, "%s%s", tree->root, path) < (int)sizeof full);
    make_folders(tree, full);
    FILE *out = fopen(full, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
    strcpy(tree->made[tree->n++], full);
}

typedef double limit_function(const char *root);

static void assert_limit(limit_function *limit_of, double expected, const struct file *files) {
    struct tree tree = {.root = "/tmp/cvy-cgroup-XXXXXX"};
    assert_non_null(mkdtemp(tree.root));
    for (int i = 0; i < MAX_FILES && files[i].path; i++)
        add_file(&tree, files[i].path, files[i].text);
    double got = limit_of(tree.root);
    while (tree.n > 0)
        assert_int_equal(remove(tree.made[--tree.n]), 0);
    rmdir(tree.root);
    assert_true(got >= expected - 1e-9 && got <= expected + 1e-9); /* of bytes: exactly */
}
#define ASSERT_QUOTA(expected, ...) \
    assert_limit(cvy_cgroup_cpus, expected, (const struct file[MAX_FILES]){__VA_ARGS__})
#define ASSERT_MEMORY(expected, ...) \
    assert_limit(cvy_cgroup_memory, expected, (const struct file[MAX_FILES]){__VA_ARGS__})

#define ASSERT_FREE(expected, ...) \
    assert_limit(cvy_memory_free, expected, (const struct file[MAX_FILES]){__VA_ARGS__})

static void version_2(void **state) {
    (void)state;
    ASSERT_QUOTA(1.5, {"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n"});
    ASSERT_QUOTA(0, {"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"});
    /* the tightest on the way up, whether nearer or farther */
    ASSERT_QUOTA(0.5, {"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n"},
                 {"/sys/fs/cgroup/a/cpu.max", "50000 100000\n"}, {"/sys/fs/cgroup/cpu.max", "max 100000\n"});
    ASSERT_QUOTA(2, {"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/b/cpu.max", "100000 50000\n"},
                 {"/sys/fs/cgroup/a/cpu.max", "800000 100000\n"});
    /* a container that sees its own cgroup as the root, but the host's path */
    ASSERT_QUOTA(3, {"/proc/self/cgroup", "0::/docker/0123\n"},
                 {"/sys/fs/cgroup/cpu.max", "300000 100000\n"});
    ASSERT_QUOTA(3, {"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "300000 100000\n"});
}

static void version_1(void **state) {
    (void)state;
    ASSERT_QUOTA(2, {"/proc/self/cgroup", "3:memory:/m\n2:cpu,cpuacct:/a\n"},
                 {"/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "200000\n"},
                 {"/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"});
    ASSERT_QUOTA(0, {"/proc/self/cgroup", "1:cpu:/\n"}, {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
                 {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"});
    /* beside version 2, mounted at unified */
    ASSERT_QUOTA(0.25, {"/proc/self/cgroup", "1:cpu:/\n0::/u\n"},
                 {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n"},
                 {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
                 {"/sys/fs/cgroup/unified/u/cpu.max", "25000 100000\n"});
    /* cpuset is another controller */
    ASSERT_QUOTA(0, {"/proc/self/cgroup", "1:cpuset:/\n"},
                 {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n"},
                 {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"});
}

/* What is missing or makes no sense grants everything. */
static void nothing_to_read(void **state) {
    (void)state;
    ASSERT_QUOTA(0, {NULL, NULL});
    ASSERT_QUOTA(0, {"/proc/self/cgroup", "nonsense\n0:\n\n"}, {"/sys/fs/cgroup/cpu.max", "100000 100000\n"});
    ASSERT_QUOTA(0, {"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "100000\n"});
    ASSERT_QUOTA(0, {"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "100000 0\n"});
}

static void memory(void **state) {
    (void)state;
    ASSERT_MEMORY(4e9, {"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/memory.max", "4000000000\n"});
    ASSERT_MEMORY(1e9, {"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/memory.max", "max\n"},
                  {"/sys/fs/cgroup/memory.max", "1000000000\n"});
    ASSERT_MEMORY(0, {"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/memory.max", "max\n"});
    ASSERT_MEMORY(2e9, {"/proc/self/cgroup", "2:cpu:/c\n4:memory:/m\n"},
                  {"/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "2000000000\n"},
                  {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"});
    ASSERT_MEMORY(0, {"/proc/self/cgroup", "4:memory:/\n"},
                  {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"});
}

static void free_memory(void **state) {
    (void)state;
    ASSERT_FREE(2048000, {"/proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:   2000 kB\nSwapFree: 7 kB\n"});
    ASSERT_FREE(1e6, {"/proc/meminfo", "MemAvailable:   2000 kB\n"}, {"/proc/self/cgroup", "0::/a\n"},
                {"/sys/fs/cgroup/a/memory.max", "1000000\n"});
    ASSERT_FREE(2048000, {"/proc/meminfo", "MemAvailable:   2000 kB\n"}, {"/proc/self/cgroup", "0::/a\n"},
                {"/sys/fs/cgroup/a/memory.max", "3000000\n"});
    ASSERT_FREE(0, {"/proc/meminfo", "MemTotal:  9000 kB\n"});
    ASSERT_FREE(0, {NULL, NULL});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_2),   cmocka_unit_test(version_1),       cmocka_unit_test(memory),
        cmocka_unit_test(free_memory), cmocka_unit_test(nothing_to_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

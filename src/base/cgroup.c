/* Limits of cgroups, version 2 (cpu.max, memory.max) and version 1 (cpu.cfs_quota_us over cpu.cfs_period_us,
   memory.limit_in_bytes). /proc/self/cgroup has a line ID:CONTROLLERS:PATH for each hierarchy; that of version 2 is
   0::PATH. A container may see its own cgroup as the root of /sys/fs/cgroup while PATH is the host's: only the last
   folder on the way up is there. */
#include "base/cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first line of a file; false: there is none. */
static bool read_line(const char *root, const char *folder, const char *file, char line[64]) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/%s", root, folder, file) >= (int)sizeof path)
        return false;
    FILE *in = fopen(path, "r");
    if (!in)
        return false;
    bool is_there = fgets(line, 64, in) != NULL;
    fclose(in);
    return is_there;
}

/* quota / period in cores; 0 where there is no limit ("max", -1) or no sense in it */
static double cores_of(const char *quota, const char *period) {
    double of = strtod(period, NULL), granted = strtod(quota, NULL); /* "max" is no number: 0 */
    return granted > 0 && of > 0 ? granted / of : 0;
}

/* "QUOTA PERIOD" of one folder of version 2 */
static double quota_v2(const char *root, const char *folder) {
    char line[64];
    const char *blank = read_line(root, folder, "cpu.max", line) ? strchr(line, ' ') : NULL;
    return blank ? cores_of(line, blank) : 0;
}

static double quota_v1(const char *root, const char *folder) {
    char quota[64], period[64];
    return read_line(root, folder, "cpu.cfs_quota_us", quota) &&
                   read_line(root, folder, "cpu.cfs_period_us", period)
               ? cores_of(quota, period)
               : 0;
}

/* One number; 0 where there is none ("max"). Version 1 has no word for it, but the largest multiple of a page. */
static double memory_of(const char *root, const char *folder, const char *file) {
    char line[64];
    double limit = read_line(root, folder, file, line) ? strtod(line, NULL) : 0;
    return limit > 0 && limit < 0x1p62 ? limit : 0;
}

static double memory_v2(const char *root, const char *folder) {
    return memory_of(root, folder, "memory.max");
}

static double memory_v1(const char *root, const char *folder) {
    return memory_of(root, folder, "memory.limit_in_bytes");
}

typedef double limit_function(const char *root, const char *folder);

struct kind {
    const char *controller;
    limit_function *v2, *v1;
};

static double smaller(double a, double b) { return a == 0 || (b > 0 && b < a) ? b : a; }

/* The smallest limit from mount + path up to mount. */
static double smallest(const char *root, const char *mount, const char *path, limit_function *limit_of) {
    char folder[PATH_MAX];
    double least = 0;
    if (snprintf(folder, sizeof folder, "%s%s", mount, path) >= (int)sizeof folder)
        return 0;
    for (;;) {
        least = smaller(least, limit_of(root, folder));
        char *slash = strrchr(folder + strlen(mount), '/');
        if (!slash)
            return least;
        *slash = 0;
    }
}

/* Whether `word` stands in a list with commas. */
static bool has_word(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == 0))
            return true;
    }
    return false;
}

/* Of one line of /proc/self/cgroup. */
static double limit_of_line(const char *root, char *line, const struct kind *kind) {
    char *controllers = strchr(line, ':'), *path, mount[128], alone[32];
    if (!controllers || !(path = strchr(++controllers, ':')))
        return 0;
    *path++ = 0;
    path[strcspn(path, "\n")] = 0;
    if (!*controllers) { /* version 2, alone or beside version 1 */
        double limit = smallest(root, "", path, kind->v2);
        return limit > 0 ? limit : smallest(root, "/unified", path, kind->v2);
    }
    if (!has_word(controllers, kind->controller))
        return 0;
    snprintf(mount, sizeof mount, "/%s", controllers); /* "/cpu,cpuacct", and as a rule a link "/cpu" */
    snprintf(alone, sizeof alone, "/%s", kind->controller);
    double limit = smallest(root, mount, path, kind->v1);
    return limit > 0 ? limit : smallest(root, alone, path, kind->v1);
}

static double least_limit(const char *root, const struct kind *kind) {
    char path[PATH_MAX], line[PATH_MAX];
    double least = 0;
    if (snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= (int)sizeof path)
        return 0;
    FILE *in = fopen(path, "r");
    if (!in)
        return 0;
    while (fgets(line, sizeof line, in))
        least = smaller(least, limit_of_line(root, line, kind));
    fclose(in);
    return least;
}

double cvy_cgroup_cpus(const char *root) {
    static const struct kind kind = {"cpu", quota_v2, quota_v1};
    return least_limit(root, &kind);
}

double cvy_cgroup_memory(const char *root) {
    static const struct kind kind = {"memory", memory_v2, memory_v1};
    return least_limit(root, &kind);
}

double cvy_memory_free(const char *root) {
    char path[PATH_MAX], line[128];
    double available = 0, limit = cvy_cgroup_memory(root);
    FILE *in =
        snprintf(path, sizeof path, "%s/proc/meminfo", root) < (int)sizeof path ? fopen(path, "r") : NULL;
    while (in && fgets(line, sizeof line, in))
        if (strncmp(line, "MemAvailable:", 13) == 0)
            available = strtod(line + 13, NULL) * 1024; /* "1234 kB" */
    if (in)
        fclose(in);
    return smaller(available, limit);
}

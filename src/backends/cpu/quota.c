/* CPU quotas of cgroups, version 2 (cpu.max) and version 1 (cpu.cfs_quota_us over cpu.cfs_period_us). /proc/self/cgroup
   has a line ID:CONTROLLERS:PATH for each hierarchy; that of version 2 is 0::PATH. A container may see its own cgroup
   as the root of /sys/fs/cgroup while PATH is the host's: then only the last folder on the way up is there. */
#include "backends/cpu/quota.h"

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

typedef double quota_function(const char *root, const char *folder);

/* The smallest quota from mount + path up to mount. */
static double smallest(const char *root, const char *mount, const char *path, quota_function *quota_of) {
    char folder[PATH_MAX];
    double least = 0;
    if (snprintf(folder, sizeof folder, "%s%s", mount, path) >= (int)sizeof folder)
        return 0;
    for (;;) {
        double quota = quota_of(root, folder);
        if (quota > 0 && (least == 0 || quota < least))
            least = quota;
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
static double quota_of_line(const char *root, char *line) {
    char *controllers = strchr(line, ':'), *path;
    if (!controllers || !(path = strchr(++controllers, ':')))
        return 0;
    *path++ = 0;
    path[strcspn(path, "\n")] = 0;
    if (!*controllers) { /* version 2, alone or beside version 1 */
        double quota = smallest(root, "", path, quota_v2);
        return quota > 0 ? quota : smallest(root, "/unified", path, quota_v2);
    }
    if (!has_word(controllers, "cpu"))
        return 0;
    char mount[128];
    snprintf(mount, sizeof mount, "/%s", controllers); /* "/cpu,cpuacct", and as a rule a link "/cpu" */
    double quota = smallest(root, mount, path, quota_v1);
    return quota > 0 ? quota : smallest(root, "/cpu", path, quota_v1);
}

double cpu_quota(const char *root) {
    char path[PATH_MAX], line[PATH_MAX];
    double least = 0;
    if (snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= (int)sizeof path)
        return 0;
    FILE *in = fopen(path, "r");
    if (!in)
        return 0;
    while (fgets(line, sizeof line, in)) {
        double quota = quota_of_line(root, line);
        if (quota > 0 && (least == 0 || quota < least))
            least = quota;
    }
    fclose(in);
    return least;
}

/* doctor: memory, its pages and limits, open files, shared memory. */
#include "cli/doctor.h"

#include "base/cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

static void check_pages(struct doctor *d) {
    char mode[128];
    if (!doctor_read(d, "/sys/kernel/mm/transparent_hugepage/enabled", mode, sizeof mode))
        doctor_say(d, DOCTOR_NOTE, "a kernel with CONFIG_TRANSPARENT_HUGEPAGE",
                   "no transparent huge pages: the first touch of memory is slow");
    else if (strstr(mode, "[never]"))
        doctor_say(d, DOCTOR_NOTE, "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
                   "transparent huge pages are off: the first touch of memory is slow");
    else
        doctor_say(d, DOCTOR_GOOD, NULL, "transparent huge pages: %s",
                   strstr(mode, "[always]") ? "always" : "madvise, which Convoy does");
}

const struct doctor_check doctor_check_pages = {.name = "pages", .run = check_pages};

/* ---- limits of the process ----------------------------------------------------------------------------- */

/* The soft limit and the hard one of a line of /proc/self/limits: 0 is unlimited; false: no such line. */
static bool read_limit(const struct doctor *d, const char *name, double *soft, double *hard) {
    char text[4096], line[256], word[2][32];
    if (!doctor_read(d, "/proc/self/limits", text, sizeof text) ||
        !doctor_field(text, name, line, sizeof line) || sscanf(line, "%31s %31s", word[0], word[1]) != 2)
        return false;
    *soft = strtod(word[0], NULL); /* "unlimited" is no number: 0 */
    *hard = strtod(word[1], NULL);
    return true;
}

/* "MemAvailable:   1234 kB" in bytes; 0: no such line. */
static double meminfo(const char *text, const char *key) {
    char value[64];
    return doctor_field(text, key, value, sizeof value) ? strtod(value, NULL) * 1024 : 0;
}

static void say_memory(struct doctor *d, double total, double limit) {
    char a[DOCTOR_BYTES], b[DOCTOR_BYTES], c[DOCTOR_BYTES];
    const double low = 2e9,
                 least = 5e8; /* what a small network on 32x32 images takes, and the program itself */
    const char *mend = limit > 0 && limit < total ? "docker run --memory=8g, or systemd's MemoryMax=8G"
                                                  : "end what else takes memory, or a larger machine";
    enum doctor_state state = d->memory < least ? DOCTOR_BAD : d->memory < low ? DOCTOR_NOTE : DOCTOR_GOOD;
    doctor_say(d, state, state == DOCTOR_GOOD ? NULL : mend, "%s free of %s, limit of the cgroup: %s",
               doctor_bytes(a, d->memory), doctor_bytes(b, total), doctor_bytes(c, limit));
}

static void check_memory(struct doctor *d) {
    char text[4096], a[DOCTOR_BYTES];
    double limit = cvy_cgroup_memory(d->root), soft, hard;
    if (!doctor_read(d, "/proc/meminfo", text, sizeof text)) {
        doctor_say(d, DOCTOR_NOTE, "mount -t proc proc /proc", "/proc/meminfo cannot be read");
        return;
    }
    d->memory = cvy_memory_free(d->root);
    say_memory(d, meminfo(text, "MemTotal"), limit);
    if (read_limit(d, "Max address space", &soft, &hard) && soft > 0)
        doctor_say(d, DOCTOR_NOTE, "ulimit -v unlimited", "addresses of this process: limited to %s",
                   doctor_bytes(a, soft));
    char infiniband[PATH_MAX];
    if (doctor_path(d, "/sys/class/infiniband", infiniband, sizeof infiniband) &&
        access(infiniband, F_OK) == 0 && read_limit(d, "Max locked memory", &soft, &hard) && soft > 0)
        doctor_say(d, DOCTOR_NOTE, "ulimit -l unlimited",
                   "InfiniBand wants memory locked, and %s may be: MPI falls back to slower ways",
                   doctor_bytes(a, soft));
}

const struct doctor_check doctor_check_memory = {.name = "memory", .run = check_memory};

static void check_files(struct doctor *d) {
    enum { LOW = 1024, LEAST = 64 };
    char mend[64];
    double soft, hard;
    if (!read_limit(d, "Max open files", &soft, &hard)) {
        doctor_say(d, DOCTOR_NOTE, "mount -t proc proc /proc", "/proc/self/limits cannot be read");
        return;
    }
    if (soft <= 0 || soft >= LOW) {
        char n[32] = "unlimited";
        if (soft > 0)
            snprintf(n, sizeof n, "%.0f", soft);
        doctor_say(d, DOCTOR_GOOD, NULL, "open files: %s", n);
        return;
    }
    snprintf(mend, sizeof mend, hard <= 0 || hard > 4096 ? "ulimit -n 4096" : "ulimit -n %.0f", hard);
    doctor_say(d, soft < LEAST ? DOCTOR_BAD : DOCTOR_NOTE, mend,
               "open files: %.0f, few for archives in many parts and for processes of MPI", soft);
}

const struct doctor_check doctor_check_files = {.name = "files", .run = check_files};

/* ---- shared memory ------------------------------------------------------------------------------------- */

static void check_shm(struct doctor *d) {
    const double low = (double)(64 << 20); /* docker's own choice: too little for MPI libraries */
    char path[PATH_MAX], a[DOCTOR_BYTES];
    struct statvfs at;
    if (!doctor_path(d, "/dev/shm", path, sizeof path) || statvfs(path, &at) != 0) {
        doctor_say(d, DOCTOR_NOTE, "sudo mkdir -p /dev/shm && sudo mount -t tmpfs tmpfs /dev/shm",
                   "no /dev/shm: MPI libraries share memory there");
        return;
    }
    double size = (double)at.f_blocks * (double)at.f_frsize;
    if (size <= low)
        doctor_say(d, DOCTOR_NOTE, "docker run --shm-size=1g, or mount -o remount,size=1g /dev/shm",
                   "/dev/shm: %s, little for MPI libraries", size > 0 ? doctor_bytes(a, size) : "0 MB");
    else
        doctor_say(d, DOCTOR_GOOD, NULL, "/dev/shm: %s", doctor_bytes(a, size));
}

const struct doctor_check doctor_check_shm = {.name = "shm", .run = check_shm};

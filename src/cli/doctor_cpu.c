/* doctor: the processor, its cores and what of them this process may use, and nodes of memory. */
#include "cli/doctor.h"

#include "base/cgroup.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- features ------------------------------------------------------------------------------------------ */

enum { CPUINFO = 16384 }; /* bytes: the first processor's lines, which are like the others' */

struct feature {
    const char *name;
    const char *flags[4]; /* all of them */
};

static bool has_all(const char *list, const struct feature *feature) {
    for (int i = 0; i < 4 && feature->flags[i]; i++)
        if (!doctor_has_word(list, feature->flags[i]))
            return false;
    return true;
}

static void check_cpu(struct doctor *d) {
    static const struct feature features[] = {{"AVX2", {"avx2", "fma"}},
                                              {"AVX-512", {"avx512f", "avx512bw", "avx512vl", "avx512dq"}},
                                              {"bf16", {"avx512_bf16"}},
                                              {"AMX", {"amx_tile", "amx_bf16"}}};
    char text[CPUINFO], flags[8192], model[128], list[128] = "", lacks[128] = "";
    if (!doctor_read(d, "/proc/cpuinfo", text, sizeof text)) {
        doctor_say(d, DOCTOR_NOTE, "mount -t proc proc /proc", "/proc/cpuinfo cannot be read");
        return;
    }
    if (!doctor_field(text, "model name", model, sizeof model))
        snprintf(model, sizeof model, "processor");
    if (!doctor_field(text, "flags", flags, sizeof flags)) {
        doctor_say(d, DOCTOR_GOOD, NULL, "%s: no x86, so its instruction sets are oneDNN's affair", model);
        return;
    }
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        char *to = has_all(flags, &features[i]) ? list : lacks;
        size_t n = strlen(to);
        snprintf(to + n, sizeof list - n, "%s%s", n ? ", " : "", features[i].name);
    }
    if (!has_all(flags, &features[0]))
        doctor_say(d, DOCTOR_NOTE, "on a virtual machine hand the host's processor through (qemu: -cpu host)",
                   "%s: no AVX2, so convolutions are many times slower", model);
    else
        doctor_say(d, DOCTOR_GOOD, NULL, "%s: %s%s%s%s", model, list, *lacks ? "; not " : "", lacks,
                   has_all(flags, &features[2]) ? "; --amp bf16 is fast" : "");
}

const struct doctor_check doctor_check_cpu = {.name = "cpu", .run = check_cpu};

/* ---- cores --------------------------------------------------------------------------------------------- */

/* The next range of a list "0-3,8"; false at its end. */
static bool next_range(const char **at, int64_t *first, int64_t *last) {
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    *first = *last = strtol(*at, &end, 10);
    if (*end == '-')
        *last = strtol(end + 1, &end, 10);
    *at = end + (*end == ',');
    return true;
}

static int64_t count_list(const char *list) {
    int64_t first, last, n = 0;
    while (next_range(&list, &first, &last))
        n += last - first + 1;
    return n;
}

/* Permitted processors that are the first permitted one of their core: so many cores. Devices are made by hwloc's count
   (backends/cpu/cores.c), and a test holds the two against each other. hwloc does not count here, as it cannot for
   --root: it takes another root from the environment alone (HWLOC_FSROOT), mixes what it reads there with what this
   machine's CPUID says of caches and complains when the two do not fit, and knows no affinity but this process's. */
static int64_t count_cores(const struct doctor *d, const char *permitted) {
    int64_t first, last, n = 0, a, b;
    for (const char *at = permitted; next_range(&at, &first, &last);) {
        for (int64_t pu = first; pu <= last; pu++) {
            char path[128], siblings[256];
            bool is_first = true;
            snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%lld/topology/thread_siblings_list",
                     (long long)pu);
            const char *list = doctor_read(d, path, siblings, sizeof siblings) ? siblings : "";
            const char *mine = permitted;
            if (next_range(&list, &a, &b) && a < pu) /* its twin counts, where that is permitted */
                for (int64_t from, to; is_first && next_range(&mine, &from, &to);)
                    is_first = a < from || a > to;
            n += is_first;
        }
    }
    return n;
}

static void say_cores(struct doctor *d, int64_t online, int64_t permitted, double quota) {
    char mend[160];
    int64_t cores = d->n_cores;
    if (permitted < online) {
        snprintf(mend, sizeof mend, "taskset -cp 0-%lld $$, or a wider cpuset (docker: --cpuset-cpus)",
                 (long long)online - 1);
        doctor_say(d, DOCTOR_NOTE, mend, "affinity or cpuset permits %lld of %lld processors",
                   (long long)permitted, (long long)online);
    }
    if (quota > 0 && quota < (double)cores) {
        d->n_cores = (int64_t)ceil(quota);
        snprintf(mend, sizeof mend, "docker run --cpus=%lld, or systemd's CPUQuota=%lld%%", (long long)cores,
                 (long long)cores * 100);
        doctor_say(d, DOCTOR_NOTE, mend,
                   "a cgroup's quota grants the time of %.4g of %lld cores: %lld thread%s, unbound", quota,
                   (long long)cores, (long long)d->n_cores, d->n_cores == 1 ? "" : "s");
    }
    if (permitted >= online && d->n_cores == cores)
        doctor_say(d, DOCTOR_GOOD, NULL, "%lld core%s, %lld processor%s, all permitted, no quota below that",
                   (long long)cores, cores == 1 ? "" : "s", (long long)online, online == 1 ? "" : "s");
}

static void check_cores(struct doctor *d) {
    char status[4096], permitted[1024], online[1024];
    if (!doctor_read(d, "/proc/self/status", status, sizeof status) ||
        !doctor_field(status, "Cpus_allowed_list", permitted, sizeof permitted) ||
        !doctor_read(d, "/sys/devices/system/cpu/online", online, sizeof online)) {
        doctor_say(d, DOCTOR_NOTE, "mount /proc and /sys", "the list of processors cannot be read");
        return;
    }
    d->n_cores = count_cores(d, permitted);
    say_cores(d, count_list(online), count_list(permitted), cvy_cgroup_cpus(d->root));
}

const struct doctor_check doctor_check_cores = {.name = "cores", .run = check_cores};

/* ---- nodes --------------------------------------------------------------------------------------------- */

static void check_numa(struct doctor *d) {
    char list[1024], mend[64];
    d->n_nodes = doctor_read(d, "/sys/devices/system/node/online", list, sizeof list) ? count_list(list) : 1;
    if (d->n_nodes <= 1) {
        doctor_say(d, DOCTOR_GOOD, NULL, "one node of memory");
        return;
    }
    snprintf(mend, sizeof mend, "--devices cpu:0-%lld", (long long)d->n_nodes - 1);
    doctor_say(d, DOCTOR_NOTE, mend,
               "%lld nodes of memory: a device for each keeps its threads beside its own memory",
               (long long)d->n_nodes);
}

const struct doctor_check doctor_check_numa = {.name = "numa", .run = check_numa};

/* doctor: the network that peers would use, and MPI. */
#include "cli/doctor.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- interfaces ---------------------------------------------------------------------------------------- */

/* Its first IPv4 address, in brackets with a blank before; "" below another root. */
static void print_address(const struct doctor *d, const char *name, char out[64]) {
    struct ifaddrs *all;
    char host[INET_ADDRSTRLEN];
    out[0] = 0;
    if (*d->root || getifaddrs(&all) != 0)
        return;
    for (const struct ifaddrs *entry = all; entry && !*out; entry = entry->ifa_next) {
        const struct sockaddr_in *at = (const struct sockaddr_in *)(const void *)entry->ifa_addr;
        if (at && at->sin_family == AF_INET && !strcmp(entry->ifa_name, name) &&
            inet_ntop(AF_INET, &at->sin_addr, host, sizeof host))
            snprintf(out, 64, " (%s)", host);
    }
    freeifaddrs(all);
}

/* Adds it when it is up and leads to other machines. */
static bool add_interface(const struct doctor *d, const char *name, struct cvy_text *out) {
    char path[PATH_MAX], state[32], address[64];
    snprintf(path, sizeof path, "/sys/class/net/%s/operstate", name);
    if (!strcmp(name, "lo") || !doctor_read(d, path, state, sizeof state) || strncmp(state, "up", 2) != 0)
        return false;
    snprintf(path, sizeof path, "/sys/class/net/%s/speed", name);
    int64_t speed = doctor_number(d, path, -1);
    print_address(d, name, address);
    if (!*d->root && !*address)
        return false;
    cvy_text_printf(out, "%s%s%s", out->n ? ", " : "", name, address);
    if (speed > 0)
        cvy_text_printf(out, " %lld Mbit/s", (long long)speed);
    return true;
}

static void check_network(struct doctor *d) {
    char path[PATH_MAX], other[64] = "";
    struct cvy_text list = {0};
    DIR *folder = doctor_path(d, "/sys/class/net", path, sizeof path) ? opendir(path) : NULL;
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.' && !add_interface(d, entry->d_name, &list) &&
            strcmp(entry->d_name, "lo") && !*other)
            snprintf(other, sizeof other, "sudo ip link set %.32s up", entry->d_name);
    if (folder)
        closedir(folder);
    if (list.data)
        doctor_say(d, DOCTOR_GOOD, NULL, "peers reach this machine by %s", list.data);
    else
        doctor_say(d, DOCTOR_NOTE, *other ? other : NULL,
                   "no interface is up but loopback: all processes must be on this machine");
    d->status = d->status ? d->status : list.status;
    cvy_text_free(&list);
}

const struct doctor_check doctor_check_network = {.name = "network", .run = check_network};

/* ---- MPI ----------------------------------------------------------------------------------------------- */

static const struct library {
    const char *name, *program, *version; /* what stands before the version in the output of --version */
    const char *crowd, *root; /* flags: more processes than cores, to be started by root; NULL: needs none */
    const char *install;
} libraries[] = {
    {"Open MPI", "mpirun.openmpi", ") ", "--oversubscribe", "--allow-run-as-root",
     "sudo apt install libopenmpi-dev openmpi-bin"},
    {"MPICH", "mpirun.mpich", "Version: ", NULL, NULL, "sudo apt install libmpich-dev mpich"},
};

/* "4.1.4", or "of unknown version". */
static void read_version(const struct library *library, char out[64]) {
    char text[4096], *const argv[] = {(char *)library->program, (char *)"--version", NULL};
    const char *at =
        doctor_run_program(argv, 5, text, sizeof text) == 0 ? strstr(text, library->version) : NULL;
    snprintf(out, 64, "of unknown version");
    if (at) {
        at += strlen(library->version);
        at += strspn(at, " ");
        snprintf(out, 64, "%.*s", (int)strcspn(at, " \n"), at);
    }
}

/* The last line of a program's output that says something. */
static const char *last_line(char *text) {
    const char *last = "it said nothing";
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (line[strspn(line, " -")])
            last = line;
    return last;
}

/* Two processes that meet through our own plugin and control connection. */
static void try_library(struct doctor *d, const struct library *library, const char *version) {
    enum { DEADLINE_S = 15 };
    char self[PATH_MAX] = "", text[8192], mend[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    bool needs_root = library->root && geteuid() == 0;
    char *argv[10];
    int k = 0;
    argv[k++] = (char *)library->program;
    if (library->crowd)
        argv[k++] = (char *)library->crowd;
    if (needs_root)
        argv[k++] = (char *)library->root;
    argv[k++] = (char *)"-n";
    argv[k++] = (char *)"2";
    argv[k++] = n > 0 ? self : (char *)"convoy";
    argv[k++] = (char *)"doctor";
    argv[k++] = (char *)"hello";
    argv[k] = NULL;
    int code = doctor_run_program(argv, DEADLINE_S, text, sizeof text);
    snprintf(mend, sizeof mend, "%s -n 2 convoy doctor hello, which says more", library->program);
    if (code == 0 && needs_root)
        doctor_say(d, DOCTOR_NOTE, library->root, "%s %s: two processes met; %s refuses root without a flag",
                   library->name, version, library->program);
    else if (code == 0)
        doctor_say(d, DOCTOR_GOOD, NULL, "%s %s: two processes met", library->name, version);
    else if (code == -2)
        doctor_say(d, DOCTOR_BAD, mend, "%s %s: two processes did not meet in %d s", library->name, version,
                   DEADLINE_S);
    else
        doctor_say(d, DOCTOR_BAD, strstr(text, "there is no libconvoy_") ? library->install : mend,
                   "%s %s: two processes did not start: %s", library->name, version, last_line(text));
}

static bool is_in_path(const char *program) {
    const char *path = getenv("PATH");
    char file[PATH_MAX];
    for (const char *at = path ? path : "/usr/bin:/bin"; *at; at += strspn(at, ":")) {
        int n = (int)strcspn(at, ":");
        if (snprintf(file, sizeof file, "%.*s/%s", n, at, program) < (int)sizeof file &&
            access(file, X_OK) == 0)
            return true;
        at += n;
    }
    return false;
}

static void check_mpi(struct doctor *d) {
    int n = 0;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        char version[64];
        if (!is_in_path(libraries[i].program))
            continue;
        n++;
        read_version(&libraries[i], version);
        if (d->options->quick == 1)
            doctor_say(d, DOCTOR_GOOD, NULL, "%s %s, not tried", libraries[i].name, version);
        else
            try_library(d, &libraries[i], version);
    }
    if (n == 0)
        doctor_say(d, DOCTOR_NOTE, libraries[0].install,
                   "no mpirun.openmpi or mpirun.mpich: one machine needs none, several do");
}

const struct doctor_check doctor_check_mpi = {.name = "mpi", .is_live = true, .run = check_mpi};

/* doctor: GPUs through the plugin, and whether there are devices enough for the parallel strategies. */
#include "cli/doctor.h"

#include "cli/device_about.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Is there an NVIDIA GPU on the bus, whatever the driver says? */
static bool has_hardware(const struct doctor *d) {
    enum { NVIDIA = 0x10de, DISPLAY = 3 };
    char path[PATH_MAX], file[PATH_MAX], vendor[32], class[32];
    bool is_found = false;
    DIR *folder = doctor_path(d, "/sys/bus/pci/devices", path, sizeof path) ? opendir(path) : NULL;
    for (const struct dirent *entry; folder && !is_found && (entry = readdir(folder));) {
        snprintf(file, sizeof file, "/sys/bus/pci/devices/%s/vendor", entry->d_name);
        if (!doctor_read(d, file, vendor, sizeof vendor) || strtol(vendor, NULL, 16) != NVIDIA)
            continue;
        snprintf(file, sizeof file, "/sys/bus/pci/devices/%s/class", entry->d_name);
        is_found = doctor_read(d, file, class, sizeof class) && strtol(class, NULL, 16) >> 16 == DISPLAY;
    }
    if (folder)
        closedir(folder);
    return is_found;
}

/* "memory: 80 GB\ndriver: …\n" as "memory: 80 GB; driver: …" */
static void join_lines(char *text) {
    for (char *end = strchr(text, '\n'); end; end = strchr(end, '\n'))
        *end = end[1] ? ';' : 0;
}

static void say_gpu(struct doctor *d, const struct cvy_backend *backend, int index) {
    struct device_about about = {NULL, NULL};
    if (device_about(backend, index, d->log, &about) == CVY_OK) {
        join_lines(about.more);
        doctor_say(d, DOCTOR_GOOD, NULL, "%s%s%s", about.line, *about.more ? "; " : "", about.more);
        d->n_gpus++;
    } else {
        doctor_say(d, DOCTOR_BAD, "nvidia-smi, which says who uses it", "%s:%d: %s", backend->name, index,
                   cvy_error());
    }
    device_about_free(&about);
}

static void check_gpu(struct doctor *d) {
    const struct cvy_backend *backend;
    if (*d->root) { /* what the plugin says is of this machine */
        bool is_there = has_hardware(d);
        doctor_say(d, DOCTOR_GOOD, NULL,
                   is_there ? "an NVIDIA GPU is on the bus" : "no NVIDIA GPU on the bus");
        return;
    }
    if (cvy_backend_load("cuda", &backend) == CVY_OK) {
        for (int i = 0, n = backend->count(); i < n; i++)
            say_gpu(d, backend, i);
    } else if (has_hardware(d)) {
        doctor_say(d, DOCTOR_BAD, "docs/gpu.md says what to install",
                   "there is an NVIDIA GPU, but it cannot be used: %s", cvy_error());
    } else {
        doctor_say(d, DOCTOR_GOOD, NULL, "none; devices are shares of the cores (%s)", cvy_error());
    }
}

const struct doctor_check doctor_check_gpu = {.name = "gpu", .run = check_gpu};

static void check_devices(struct doctor *d) {
    if (d->n_gpus >= 2)
        doctor_say(d, DOCTOR_GOOD, NULL, "%lld GPUs: cuda:0-%lld", (long long)d->n_gpus,
                   (long long)d->n_gpus - 1);
    else if (d->n_gpus == 1)
        doctor_say(
            d, DOCTOR_NOTE, "--devices cuda:0/0,cuda:0/1",
            "one GPU, and parallel strategies want two devices: its parts stand in for them, with the same "
            "results, no faster");
    else if (d->n_cores >= 2)
        doctor_say(d, DOCTOR_GOOD, NULL, "up to %lld devices with a core each: cpu:0-%lld",
                   (long long)d->n_cores, (long long)d->n_cores - 1);
    else
        doctor_say(d, DOCTOR_NOTE, "--devices cpu:0-1",
                   "one core, and parallel strategies want two devices: virtual ones share it, with the same "
                   "results, no faster");
}

const struct doctor_check doctor_check_devices = {.name = "devices", .run = check_devices};

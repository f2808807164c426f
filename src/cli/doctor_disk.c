/* doctor: where a run is written to, and the clock. */
#include "cli/doctor.h"

#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 1 << 20, N_PIECES = 32 };

/* The folder, or the nearest one above it that is there. */
static void nearest_folder(const char *folder, char path[PATH_MAX]) {
    char copy[PATH_MAX];
    snprintf(path, PATH_MAX, "%s", folder);
    while (access(path, F_OK) != 0 && errno == ENOENT && strcmp(path, ".") != 0 && strcmp(path, "/") != 0) {
        snprintf(copy, sizeof copy, "%s", path);
        snprintf(path, PATH_MAX, "%s", dirname(copy));
    }
}

/* Writes so many pieces into a file that has no name. *rate: bytes a second to the disk. False: errno says why. */
static bool try_to_write(const char *folder, int n_pieces, double *rate) {
    char name[PATH_MAX];
    errno = ENAMETOOLONG;
    int fd = snprintf(name, sizeof name, "%s/convoy-doctor-XXXXXX", folder) < (int)sizeof name ? mkstemp(name)
                                                                                               : -1;
    if (fd < 0)
        return false;
    unlink(name);
    char *piece = malloc(PIECE);
    int64_t start = cvy_now_ns();
    bool is_well = piece != NULL;
    if (piece)
        memset(piece, 0xA5, PIECE);
    errno = 0;
    for (int i = 0; is_well && i < n_pieces; i++)
        is_well = write(fd, piece, PIECE) == PIECE;
    is_well = is_well && (n_pieces == 0 || fsync(fd) == 0);
    int error = errno ? errno : ENOSPC; /* a short write has no number */
    *rate = (double)PIECE * n_pieces / ((double)(cvy_now_ns() - start) * 1e-9);
    free(piece);
    close(fd);
    errno = error;
    return is_well;
}

static void check_output(struct doctor *d) {
    const double low = 2e9, slow = 2e7; /* some checkpoints; a checkpoint of 200 MB in 10 s */
    const bool is_quick = d->options->quick == 1;
    char path[PATH_MAX], a[DOCTOR_BYTES], b[DOCTOR_BYTES];
    struct statvfs at;
    double rate;
    nearest_folder(d->options->output_dir ? d->options->output_dir : ".", path);
    if (statvfs(path, &at) != 0 || !try_to_write(path, is_quick ? 0 : N_PIECES, &rate)) {
        doctor_say(d, DOCTOR_BAD, "--output-dir with a folder that can be written",
                   "'%s' cannot be written: %s", path, strerror(errno));
        return;
    }
    double n_free = (double)at.f_bavail * (double)at.f_frsize;
    if (n_free < low)
        doctor_say(d, DOCTOR_NOTE, "--output-dir with a folder on another disk",
                   "'%s': %s free, few checkpoints of a large network", path,
                   n_free > 0 ? doctor_bytes(a, n_free) : "nothing");
    else if (is_quick)
        doctor_say(d, DOCTOR_GOOD, NULL, "'%s': %s free", path, doctor_bytes(a, n_free));
    else if (rate < slow)
        doctor_say(d, DOCTOR_NOTE, "--output-dir with a folder on a local disk",
                   "'%s': %s/s to the disk, slow for checkpoints", path, doctor_bytes(a, rate));
    else
        doctor_say(d, DOCTOR_GOOD, NULL, "'%s': %s free, %s/s to the disk", path, doctor_bytes(a, n_free),
                   doctor_bytes(b, rate));
}

const struct doctor_check doctor_check_output = {.name = "output", .is_live = true, .run = check_output};

static void check_clock(struct doctor *d) {
    const time_t written = 1767225600; /* 2026, when this was */
    char source[64] = "unknown", now_text[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc))
        strftime(now_text, sizeof now_text, "%Y-%m-%d %H:%M UTC", &utc);
    doctor_read(d, "/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof source);
    source[strcspn(source, "\n")] = 0;
    if (now < written)
        doctor_say(d, DOCTOR_BAD, "sudo timedatectl set-ntp true", "the clock says %s: it is wrong",
                   now_text);
    else if (!strcmp(source, "hpet") || !strcmp(source, "acpi_pm") || !strcmp(source, "jiffies"))
        doctor_say(d, DOCTOR_NOTE,
                   "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
                   "the clock is read from %s: each look at it takes long", source);
    else
        doctor_say(d, DOCTOR_GOOD, NULL, "%s, read from %s", now_text, source);
}

const struct doctor_check doctor_check_clock = {.name = "clock", .run = check_clock};

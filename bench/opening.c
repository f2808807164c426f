/* How long does a data set take to open, and how much memory does its list of samples take?
 *
 *   usage: opening SPEC
 *
 * Opens the training part twice in one process, so that the second finds the kept index if there is one, and prints
 *   folder:photos: 60000 samples, opened in 61.2 ms, then in 9.1 ms; 17.3 bytes a file beside 52.0 of its path
 * Memory is the growth of the resident set (VmRSS) through the second, which stays open.
 */
#include "base/thread.h"
#include "data/data.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

static double resident_bytes(void) {
    char line[256];
    double kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    malloc_trim(0);
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "VmRSS: %lf kB", &kb);
    if (file)
        fclose(file);
    return kb * 1024;
}

static double open_ms(const char *spec, cvy_dataset **out) {
    int64_t start = cvy_now_ns();
    if (cvy_dataset_open(spec, CVY_SPLIT_TRAIN, NULL, out) != CVY_OK)
        return -1;
    return (double)(cvy_now_ns() - start) / 1e6;
}

int main(int argc, char **argv) {
    cvy_dataset *dataset;
    double path_bytes = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: opening SPEC\n");
        return 2;
    }
    double first = open_ms(argv[1], &dataset);
    if (first < 0) {
        fprintf(stderr, "%s\n", cvy_error());
        return 1;
    }
    cvy_dataset_free(dataset);
    double before = resident_bytes();
    double second = open_ms(argv[1], &dataset);
    if (second < 0) {
        fprintf(stderr, "%s\n", cvy_error());
        return 1;
    }
    double taken = resident_bytes() - before;
    double n = (double)dataset->n;
    for (int64_t i = 0; dataset->format->path && i < dataset->n; i++)
        path_bytes += (double)strlen(dataset->format->path(dataset, i)) + 1;
    printf(
        "%s: %.0f samples, opened in %.1f ms, then in %.1f ms; %.1f bytes a file beside %.1f of its path\n",
        argv[1], n, first, second, (taken - path_bytes) / n, path_bytes / n);
    cvy_dataset_free(dataset);
    return 0;
}

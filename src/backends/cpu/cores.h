/* The cores that this process may use, and each device's share of them. */
#ifndef CVY_CPU_CORES_H
#define CVY_CPU_CORES_H

#include "base/status.h"

#include <hwloc.h>
#include <stdbool.h>

struct cpu_cores {
    hwloc_topology_t topology;
    unsigned *pu;    /* one logical processor (its number in the operating system) per core */
    int n;           /* at least 1 */
    int n_permitted; /* entries of pu; n is less where a quota grants no more */
    double quota;    /* of processor time, in cores; 0: none */
};

/* Cores permitted by cgroup and affinity, of the hyperthreads of a core only one; no more than the cgroup's quota of
   processor time keeps busy. Local, any thread. */
cvy_status cpu_cores_open(struct cpu_cores *out);
void cpu_cores_close(struct cpu_cores *cores);

/* How many of n cores a quota keeps busy: the last one perhaps only in part. */
int cpu_cores_granted(int n, double quota);

/* Device `index` of n_devices gets cores first .. first + count - 1 of n: contiguous parts, differing by at most
   one; with more devices than cores, devices share and count is 1. */
void cpu_cores_share(int n, int index, int n_devices, int *first, int *count);

/* A quota grants fewer cores than are permitted, but says nothing of which. */
static inline bool cpu_cores_has_quota(const struct cpu_cores *cores) {
    return cores->n < cores->n_permitted;
}

/* Binds the calling thread to these cores. False when the system refuses: then it stays where it was. Under a quota it
   stays so too, and that is true: others with a quota on the same machine would crowd the same few cores. */
bool cpu_cores_bind(const struct cpu_cores *cores, int first, int count);

#endif

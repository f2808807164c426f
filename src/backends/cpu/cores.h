/* The cores that this process may use, and each device's share of them. */
#ifndef CVY_CPU_CORES_H
#define CVY_CPU_CORES_H

#include "base/status.h"

#include <hwloc.h>
#include <stdbool.h>

struct cpu_cores {
    hwloc_topology_t topology;
    unsigned *pu; /* one logical processor (its number in the operating system) per core */
    int n;        /* at least 1 */
};

/* Cores permitted by cgroup and affinity; of the hyperthreads of a core only one. Local, any thread. */
cvy_status cpu_cores_open(struct cpu_cores *out);
void cpu_cores_close(struct cpu_cores *cores);

/* Device `index` of n_devices gets cores first .. first + count - 1 of n: contiguous parts, differing by at most
   one; with more devices than cores, devices share and count is 1. */
void cpu_cores_share(int n, int index, int n_devices, int *first, int *count);

/* Binds the calling thread to these cores. False when the system refuses: then it stays where it was. */
bool cpu_cores_bind(const struct cpu_cores *cores, int first, int count);

#endif

/* What the machine and the cgroups of this process grant it. */
#ifndef CVY_BASE_CGROUP_H
#define CVY_BASE_CGROUP_H

/* The smallest limit of its cgroup and of those above it; 0: none. What cannot be read grants everything. `root`: what
   stands before /proc and /sys, "" for the system's own. Local, any thread. */
double cvy_cgroup_cpus(const char *root);   /* in cores (1.5: three cores' half time) */
double cvy_cgroup_memory(const char *root); /* in bytes */

/* Bytes that can still be taken without swapping: MemAvailable, or the cgroup's limit where that is less; 0: not known.
   Local, any thread. */
double cvy_memory_free(const char *root);

#endif

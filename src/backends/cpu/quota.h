/* How much processor time the cgroups of this process grant it. */
#ifndef CVY_CPU_QUOTA_H
#define CVY_CPU_QUOTA_H

/* The smallest quota of its cgroup and of those above it, in cores (1.5: three cores' half time); 0: none. What cannot
   be read grants everything. `root`: what stands before /proc and /sys, "" for the system's own. Local, any thread. */
double cpu_quota(const char *root);

#endif

/* hwloc leaves out what a cgroup's cpuset forbids; the affinity mask and the quota are applied here. */
#include "backends/cpu/cores.h"
#include "base/cgroup.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

/* Fills cores->pu with the first permitted logical processor of every core (or of every one, where the system
   tells of no cores). */
static cvy_status list_cores(struct cpu_cores *cores, hwloc_const_cpuset_t permitted) {
    hwloc_obj_type_t type =
        hwloc_get_nbobjs_by_type(cores->topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    int n = hwloc_get_nbobjs_by_type(cores->topology, type);
    CVY_TRY(CVY_ALLOC(cores->pu, (size_t)(n > 0 ? n : 1)));
    hwloc_bitmap_t usable = hwloc_bitmap_alloc();
    if (!usable)
        return CVY_FAIL(CVY_ERR_MEMORY, "no memory for a set of cores");
    for (int i = 0; i < n; i++) {
        hwloc_bitmap_and(usable, hwloc_get_obj_by_type(cores->topology, type, (unsigned)i)->cpuset,
                         permitted);
        int pu = hwloc_bitmap_first(usable);
        if (pu >= 0)
            cores->pu[cores->n++] = (unsigned)pu;
    }
    hwloc_bitmap_free(usable);
    return cores->n > 0
               ? CVY_OK
               : CVY_FAIL(CVY_ERR_FAILED, "no core is permitted to this process; check taskset and cgroups");
}

cvy_status cpu_cores_open(struct cpu_cores *out) {
    cvy_status status;
    hwloc_bitmap_t permitted = NULL;
    struct cpu_cores cores = {0};
    if (hwloc_topology_init(&cores.topology) != 0)
        return CVY_FAIL(CVY_ERR_FAILED, "hwloc cannot start");
    if (hwloc_topology_load(cores.topology) != 0) {
        status = CVY_FAIL(CVY_ERR_FAILED, "hwloc cannot read the machine's topology");
        goto out;
    }
    permitted = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(cores.topology));
    if (!permitted) {
        status = CVY_FAIL(CVY_ERR_MEMORY, "no memory for a set of cores");
        goto out;
    }
    hwloc_bitmap_t bound = hwloc_bitmap_alloc();
    /* the union over the process's threads: the caller may be a device's thread, bound to a part */
    if (bound && hwloc_get_cpubind(cores.topology, bound, HWLOC_CPUBIND_PROCESS) == 0)
        hwloc_bitmap_and(permitted, permitted, bound);
    hwloc_bitmap_free(bound);
    CVY_TRY_OUT(list_cores(&cores, permitted));
    cores.n_permitted = cores.n;
    cores.quota = cvy_cgroup_cpus("");
    cores.n = cpu_cores_granted(cores.n, cores.quota);
    *out = cores;
    hwloc_bitmap_free(permitted);
    return CVY_OK;
out:
    hwloc_bitmap_free(permitted);
    cpu_cores_close(&cores);
    return status;
}

void cpu_cores_close(struct cpu_cores *cores) {
    if (cores->topology)
        hwloc_topology_destroy(cores->topology);
    free(cores->pu);
    *cores = (struct cpu_cores){0};
}

int cpu_cores_granted(int n, double quota) { return quota > 0 && quota < n ? (int)ceil(quota) : n; }

void cpu_cores_share(int n, int index, int n_devices, int *first, int *count) {
    int64_t from = (int64_t)index * n / n_devices, end = (int64_t)(index + 1) * n / n_devices;
    *first = (int)from;
    *count = end > from ? (int)(end - from) : 1;
}

bool cpu_cores_bind(const struct cpu_cores *cores, int first, int count) {
    if (cpu_cores_has_quota(cores))
        return true;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (!set)
        return false;
    for (int i = first; i < first + count; i++)
        hwloc_bitmap_set(set, cores->pu[i]);
    bool is_bound = hwloc_set_cpubind(cores->topology, set, HWLOC_CPUBIND_THREAD) == 0;
    hwloc_bitmap_free(set);
    return is_bound;
}

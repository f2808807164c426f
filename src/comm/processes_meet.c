/* How the processes of a run get to know each other: one exchange of introductions, then the control connection. */
#include "comm/processes.h"

#include "base/text.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOST_BYTES = 128, CORES = 1024 };

/* What each says of itself. All processes run the same build, or find out here that they do not. */
struct introduction {
    char version[32];
    char host[HOST_BYTES];             /* name and boot: the same on one machine alone */
    unsigned char cores[CORES / 8];    /* that it may run on */
    char address[CVY_CONTROL_ADDRESS]; /* of rank 0's control connection */
    bool shares_memory;
    char failure[CVY_REASON];
};

/* Of one size in all versions, so that the first field can be compared. */
union introduction_room {
    struct introduction said;
    char room[4096];
};
_Static_assert(sizeof(union introduction_room) == 4096, "an introduction must fit");

static void introduce(struct introduction *out) {
    snprintf(out->version, sizeof out->version, "%s/%zu", CVY_VERSION, sizeof(struct cvy_note));
    char name[64] = "", boot[48] = "";
    gethostname(name, sizeof name - 1);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file) {
        if (!fgets(boot, sizeof boot, file))
            boot[0] = '\0';
        fclose(file);
    }
    struct stat here = {0}; /* containers of one machine have the same boot, but see other processes */
    (void)stat("/proc/self/ns/pid", &here);
    snprintf(out->host, sizeof out->host, "%s %.36s %llu", name, boot, (unsigned long long)here.st_ino);
    out->shares_memory = !getenv("CONVOY_NO_SHARED_MEMORY");
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        memcpy(out->cores, &set, sizeof out->cores < sizeof set ? sizeof out->cores : sizeof set);
}

/* Who is on this machine, and who else may run on the same cores? */
static void find_neighbours(struct cvy_processes *all, const union introduction_room *of) {
    const struct introduction *mine = &of[all->base.rank].said;
    all->base.core_rank = all->base.core_size = 0;
    for (int rank = 0; rank < all->base.size; rank++) {
        bool is_near = memcmp(of[rank].said.host, mine->host, sizeof mine->host) == 0;
        bool is_mate = is_near && memcmp(of[rank].said.cores, mine->cores, sizeof mine->cores) == 0;
        all->courier.is_near[rank] = is_near && mine->shares_memory && of[rank].said.shares_memory;
        all->base.core_size += is_mate;
        all->base.core_rank += is_mate && rank < all->base.rank;
    }
}

static cvy_status compare(const struct cvy_processes *all, const union introduction_room *of) {
    if (of[0].said.failure[0])
        return CVY_FAIL(CVY_ERR_LOST, "rank 0: %s", of[0].said.failure);
    for (int rank = 1; rank < all->base.size; rank++) {
        if (strncmp(of[rank].said.version, of[0].said.version, sizeof of->said.version) != 0)
            return CVY_FAIL(CVY_ERR_USAGE,
                            "rank 0 runs Convoy %.20s and rank %d runs %.20s: install the same on both",
                            of[0].said.version, rank, of[rank].said.version);
    }
    return CVY_OK;
}

static cvy_status connect_control(struct cvy_processes *all, const union introduction_room *of,
                                  cvy_status listening) {
    if (all->base.size == 1)
        return CVY_OK;
    CVY_TRY(listening);
    CVY_TRY(compare(all, of));
    if (all->base.rank > 0)
        CVY_TRY(cvy_control_connect(all->base.rank, all->base.size, all->timeout_s, of[0].said.address,
                                    &all->control));
    return CVY_OK;
}

cvy_status cvy_processes_meet(struct cvy_processes *all) {
    union introduction_room mine, *of;
    cvy_status status = CVY_OK, listening = CVY_OK;
    CVY_TRY(CVY_ALLOC(of, (size_t)all->base.size));
    memset(&mine, 0, sizeof mine);
    introduce(&mine.said);
    if (all->base.rank == 0 && all->base.size > 1)
        listening = cvy_control_listen(all->base.size, all->timeout_s, mine.said.address, &all->control);
    if (listening != CVY_OK)
        snprintf(mine.said.failure, sizeof mine.said.failure, "%s", cvy_error());
    char error[CVY_NETWORK_ERROR] = "no reason given";
    struct cvy_courier *courier = &all->courier;
    if (courier->network->exchange(courier->self, &mine, of, sizeof mine, error) != 0)
        CVY_TRY_OUT(CVY_FAIL(CVY_ERR_LOST, "%s: %s", courier->network->name, error));
    cvy_counter_add(&all->stage, 1); /* CVY_STAGE_EXCHANGED */
    find_neighbours(all, of);
    CVY_TRY_OUT(connect_control(all, of, listening));
out:
    free(of);
    return status;
}

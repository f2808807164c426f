/* The transport `mpi`: between processes that mpirun started, over the plugin of the MPI library that it belongs to.
   A group whose members are all in this process works as with `threads`; else through its party (party.h). */
#include "comm/links.h"
#include "comm/party.h"
#include "comm/processes.h"
#include "rt/plugin.h"

#include <stdatomic.h>
#include <stdlib.h>

extern const struct cvy_transport cvy_transport_mpi, cvy_transport_threads;

/* What tells that a launcher started this process, and the plugin for it. */
static const struct launcher {
    const char *variable, *plugin, *hint;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "mpi_openmpi",
     "mpirun of Open MPI started this process: install libopenmpi-dev and build Convoy again"},
    {"PMI_SIZE", "mpi_mpich",
     "mpirun of MPICH started this process: install libmpich-dev and build Convoy again"},
};

static const struct launcher *launcher_of_this(void) {
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *value = getenv(launchers[i].variable);
        if (value && *value)
            return &launchers[i];
    }
    return NULL;
}

static bool mpi_is_launched(void) { return launcher_of_this() != NULL; }

static cvy_status mpi_join(double timeout_s, const cvy_log_sink *log, struct cvy_world **out) {
    const struct launcher *launcher = launcher_of_this();
    if (!launcher)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED, "no mpirun started this process: mpirun -n 2 convoy train ...");
    const void *symbol;
    CVY_TRY(cvy_plugin_load(launcher->plugin, CVY_NETWORK_SYMBOL, launcher->hint, &symbol));
    const struct cvy_network *network = symbol;
    if (network->abi != CVY_NETWORK_ABI)
        return CVY_FAIL(CVY_ERR_UNSUPPORTED,
                        "the plugin %s is of another version (%u, not %d): build both together",
                        launcher->plugin, network->abi, CVY_NETWORK_ABI);
    return cvy_processes_join(&cvy_transport_mpi, network, timeout_s, log, out);
}

/* ---- groups --------------------------------------------------------------------------------------------- */

static cvy_status mpi_open(const struct cvy_group_spec *spec, struct cvy_group **members) {
    return spec->world ? cvy_processes_open(spec, members) : cvy_hub_open(spec, members);
}

static bool is_between_processes(int n, struct cvy_group **members) {
    for (int m = 0; m < n; m++) {
        if (members[m])
            return members[m]->hub->processes;
    }
    return false;
}

/* What goes wrong here says less than the error that led here, which the caller still has to tell. */
static void mpi_close(int n, struct cvy_group **members) {
    struct cvy_error before;
    cvy_error_save(&before, CVY_OK);
    if (is_between_processes(n, members))
        cvy_processes_close(n, members);
    else
        cvy_hub_close(n, members);
    (void)cvy_error_restore(&before);
}

static cvy_status mpi_reduce_start(struct cvy_group *me, int slot, const struct cvy_reduction *what) {
    if (!me->hub->party)
        return cvy_transport_threads.reduce_start(me, slot, what);
    CVY_TRY(cvy_hub_post_reduction(me, slot, what));
    me->op[slot] = cvy_party_post(me, &(struct cvy_post){.reduction = what});
    return CVY_OK;
}

static cvy_status mpi_reduce_wait(struct cvy_group *me, int slot) {
    if (!me->hub->party || slot < 0 || slot >= CVY_MAX_REDUCTIONS || !me->open[slot])
        return cvy_transport_threads.reduce_wait(me, slot); /* which also says what is wrong */
    CVY_TRY(cvy_party_wait(me, me->op[slot], me->rounds[slot], me->open[slot]->name));
    me->open[slot] = NULL;
    return CVY_OK;
}

static cvy_status mpi_broadcast(struct cvy_group *me, int root, void *bytes, size_t n_bytes,
                                const char *name) {
    struct cvy_hub *hub = me->hub;
    if (!hub->party)
        return cvy_transport_threads.broadcast(me, root, bytes, n_bytes, name);
    CVY_TRY(cvy_hub_check(me, name, 0));
    if (root < 0 || root >= hub->n)
        return CVY_FAIL(CVY_ERR_FAILED, "%s: there is no member %d among %d", name, root, hub->n);
    struct cvy_post post = {.broadcast = {.name = name, .root = root, .bytes = bytes, .n_bytes = n_bytes}};
    return cvy_party_wait(me, cvy_party_post(me, &post), ++me->general_rounds, name);
}

static cvy_status mpi_barrier(struct cvy_group *me, const char *name) {
    return mpi_broadcast(me, 0, NULL, 0, name);
}

static void mpi_abort(struct cvy_group *me, const char *reason) { cvy_hub_abort(me->hub, reason); }

static const char *mpi_abort_reason(const struct cvy_group *me) {
    return atomic_load(&me->hub->is_aborted) ? me->hub->reason : NULL;
}

const struct cvy_transport cvy_transport_mpi = {
    .name = "mpi",
    .is_launched = mpi_is_launched,
    .join = mpi_join,
    .leave = cvy_processes_leave,
    .open = mpi_open,
    .close = mpi_close,
    .reduce_start = mpi_reduce_start,
    .reduce_wait = mpi_reduce_wait,
    .broadcast = mpi_broadcast,
    .link_open = cvy_link_open,
    .send = cvy_link_send,
    .recv = cvy_link_recv,
    .barrier = mpi_barrier,
    .abort = mpi_abort,
    .abort_reason = mpi_abort_reason,
};

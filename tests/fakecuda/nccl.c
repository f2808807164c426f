/* NCCL as far as the plugin calls it, between GPUs of one process. All sends and receives of a group are one item in
   their stream. It runs when it is the stream's head: whatever of it has its other half at the head of another stream
   is moved then, and it is over when nothing is left. So a send waits for its receive, as NCCL's does, and orders that
   would lock there lock here. A sum happens when all members have it at the heads of their streams, in an order of its
   own: around a ring, from another member for each part, as NCCL's is not the tree's either. */
#include "gpu.h"

#include "base/mem.h"

#include <nccl.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MEMBERS = 64, MAX_OPS = 512 };

struct meeting { /* all that share an id */
    char id[sizeof(ncclUniqueId)];
    int n, n_here, n_left;
    struct ncclComm *members[MAX_MEMBERS];
    struct meeting *next;
};

struct ncclComm {
    struct meeting *meeting;
    struct fake_gpu *gpu;
    int rank;
    bool is_aborted;
    uint64_t n_sent[MAX_MEMBERS], n_received[MAX_MEMBERS]; /* enqueued so far, to and from each */
    uint64_t n_sums;
};

struct op {
    bool is_send, is_done;
    int peer;
    uint64_t number; /* among those of this pair and direction */
    char *at;
    size_t n_bytes;
};

struct group { /* what the present thread has gathered, then an item's payload */
    struct ncclComm *comm;
    cudaStream_t stream;
    int n;
    struct sum {
        bool is_it, is_done; /* is_it: a sum, and no sends and receives */
        uint64_t number;
        const float *from;
        float *to;
        size_t n;
    } sum;
    struct op ops[MAX_OPS];
};

static struct meeting *meetings;
static uint64_t n_ids;
static _Thread_local struct group *gathering;

static ncclResult_t leave(bool is_right) {
    (void)fake_leave(cudaSuccess);
    return is_right ? ncclSuccess : ncclInvalidUsage;
}

/* ---- meeting ------------------------------------------------------------------------------------------------- */

const char *ncclGetErrorString(ncclResult_t code) {
    return code == ncclSuccess      ? "no error"
           : code == ncclInProgress ? "it is in progress"
                                    : fake_reason("an error of NCCL");
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *out) {
    if (fake_call_fails("ncclGetUniqueId"))
        return ncclSystemError;
    (void)fake_lock();
    memset(out, 0, sizeof *out);
    uint64_t id = ++n_ids;
    memcpy(out, &id, sizeof id);
    return leave(true);
}

static struct meeting *find_meeting(const ncclUniqueId *id, int n) {
    for (struct meeting *m = meetings; m; m = m->next) {
        if (memcmp(m->id, id, sizeof m->id) == 0)
            return m;
    }
    struct meeting *made;
    if (CVY_ALLOC(made, 1) != CVY_OK)
        return NULL;
    memcpy(made->id, id, sizeof made->id);
    made->n = n;
    made->next = meetings;
    return meetings = made;
}

/* NCCL refuses two members on one GPU. */
static bool may_come(const struct meeting *m, int rank, int n) {
    if (m->n != n || rank < 0 || rank >= n || n > MAX_MEMBERS || m->members[rank])
        return false;
    for (int k = 0; k < n; k++) {
        if (m->members[k] && m->members[k]->gpu == fake_present())
            return false;
    }
    return true;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int n, ncclUniqueId id, int rank, ncclConfig_t *config) {
    struct ncclComm *comm;
    if (fake_call_fails("ncclCommInitRankConfig"))
        return ncclSystemError;
    (void)fake_lock();
    struct meeting *m = find_meeting(&id, n);
    if (!m || config->blocking != 0 || !may_come(m, rank, n) || CVY_ALLOC(comm, 1) != CVY_OK) {
        (void)fake_complain(cudaErrorInvalidValue, "member %d of %d cannot come on %s", rank, n,
                            fake_present()->name);
        return leave(false);
    }
    comm->meeting = m;
    comm->gpu = fake_present();
    comm->rank = rank;
    m->members[rank] = comm;
    m->n_here++;
    *out = comm;
    (void)leave(true);
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state) {
    (void)fake_lock();
    *state = comm->meeting->n_here < comm->meeting->n ? ncclInProgress : ncclSuccess;
    return leave(true);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    (void)comm;
    return ncclSuccess;
}

/* Its memory goes with that of the last member: items may still name it. */
static void part(struct ncclComm *comm) {
    struct meeting *m = comm->meeting;
    comm->is_aborted = true;
    if (++m->n_left < m->n_here)
        return;
    struct meeting **link = &meetings;
    while (*link != m)
        link = &(*link)->next;
    *link = m->next;
    for (int k = 0; k < m->n; k++)
        free(m->members[k]);
    free(m);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    (void)fake_lock();
    part(comm);
    return leave(true);
}

/* What it still has in a stream is dropped. */
ncclResult_t ncclCommAbort(ncclComm_t comm) {
    (void)fake_lock();
    comm->is_aborted = true;
    for (int s = 0; s < FAKE_MAX_STREAMS; s++)
        fake_drop(&fake.streams[s], comm);
    part(comm);
    return leave(true);
}

/* ---- running ------------------------------------------------------------------------------------------------- */

/* The group of `peer` that is its stream's head, and in it the other half of `op`. */
static struct op *other_half(const struct group *mine, const struct op *op, struct fake_item **of) {
    const struct ncclComm *peer = mine->comm->meeting->members[op->peer];
    for (int s = 0; s < FAKE_MAX_STREAMS; s++) {
        struct fake_item *item = fake_head(&fake.streams[s]);
        if (!item || item->owner != peer)
            continue;
        struct group *theirs = item->payload;
        for (int k = 0; k < theirs->n; k++) {
            struct op *o = &theirs->ops[k];
            if (o->is_done || o->is_send == op->is_send || o->peer != mine->comm->rank ||
                o->number != op->number)
                continue;
            *of = item;
            return o;
        }
    }
    return NULL;
}

static bool is_over(const struct group *g) {
    for (int k = 0; k < g->n; k++) {
        if (!g->ops[k].is_done)
            return false;
    }
    return true;
}

static bool is_ready(const void *payload) {
    const struct group *g = payload;
    struct fake_item *of;
    if (is_over(g))
        return true;
    for (int k = 0; k < g->n; k++) {
        if (!g->ops[k].is_done && other_half(g, &g->ops[k], &of))
            return true;
    }
    return false;
}

/* Moves what can be moved; the item stays the head until all was. */
static bool run(void *payload) {
    struct group *g = payload;
    struct fake_item *theirs;
    for (int k = 0; k < g->n; k++) {
        struct op *mine = &g->ops[k], *other = mine->is_done ? NULL : other_half(g, mine, &theirs);
        if (!other)
            continue;
        mine->is_done = other->is_done = true;
        if (other->n_bytes != mine->n_bytes) {
            (void)fake_complain(cudaErrorInvalidValue, "NCCL: %zu bytes are sent and %zu received",
                                mine->is_send ? mine->n_bytes : other->n_bytes,
                                mine->is_send ? other->n_bytes : mine->n_bytes);
            (void)fake_break(g->comm->gpu, cudaErrorInvalidValue);
        } else if (!fake_open_blocks(theirs)) {
            (void)fake_break(g->comm->gpu, cudaErrorIllegalAddress);
        } else {
            memcpy(mine->is_send ? other->at : mine->at, mine->is_send ? mine->at : other->at, mine->n_bytes);
        }
    }
    return is_over(g);
}

/* ---- sums ---------------------------------------------------------------------------------------------------- */

static struct fake_item *head_of_sum(const struct ncclComm *member, uint64_t number) {
    for (int s = 0; member && s < FAKE_MAX_STREAMS; s++) {
        struct fake_item *item = fake_head(&fake.streams[s]);
        const struct group *g = item && item->owner == member ? item->payload : NULL;
        if (g && g->sum.is_it && g->sum.number == number)
            return item;
    }
    return NULL;
}

static bool is_sum_ready(const void *payload) {
    const struct group *g = payload;
    bool is_ready = true;
    for (int m = 0; m < g->comm->meeting->n; m++)
        is_ready &= head_of_sum(g->comm->meeting->members[m], g->sum.number) != NULL;
    return g->sum.is_done || is_ready;
}

/* Element i is added around the ring, from the member behind the one whose part it lies in. */
static void add_around(struct group **members, int n_members, size_t n) {
    for (size_t i = 0; i < n; i++) {
        int first = (int)(i * (size_t)n_members / n) + 1;
        float sum = members[first % n_members]->sum.from[i];
        for (int k = 1; k < n_members; k++)
            sum += members[(first + k) % n_members]->sum.from[i];
        for (int m = 0; m < n_members; m++)
            members[m]->sum.to[i] = sum;
    }
}

/* Whoever comes first adds for all. */
static bool run_sum(void *payload) {
    struct group *mine = payload, *members[MAX_MEMBERS];
    const struct meeting *meeting = mine->comm->meeting;
    bool is_right = true;
    if (mine->sum.is_done)
        return true;
    for (int m = 0; m < meeting->n; m++) {
        struct fake_item *item = head_of_sum(meeting->members[m], mine->sum.number);
        members[m] = item->payload;
        is_right &= members[m]->sum.n == mine->sum.n && fake_open_blocks(item);
    }
    if (is_right) {
        add_around(members, meeting->n, mine->sum.n);
    } else {
        (void)fake_complain(cudaErrorInvalidValue, "NCCL: the members' sums do not fit");
        (void)fake_break(mine->comm->gpu, cudaErrorInvalidValue);
    }
    for (int m = 0; m < meeting->n; m++)
        members[m]->sum.is_done = true;
    return true;
}

/* ---- enqueueing ---------------------------------------------------------------------------------------------- */

ncclResult_t ncclGroupStart(void) {
    if (gathering || fake_call_fails("ncclGroupStart") || CVY_ALLOC(gathering, 1) != CVY_OK)
        return ncclInvalidUsage;
    return ncclSuccess;
}

static ncclResult_t add(const char *name, bool is_send, char *at, size_t n_bytes, int peer, ncclComm_t comm,
                        cudaStream_t stream) {
    struct group *g = gathering;
    if (fake_call_fails(name))
        return ncclSystemError;
    (void)fake_lock();
    bool is_right = g && g->n < MAX_OPS && peer >= 0 && peer < comm->meeting->n && peer != comm->rank &&
                    (g->n == 0 || (g->comm == comm && g->stream == stream));
    if (!is_right) {
        (void)fake_complain(cudaErrorInvalidValue, "%s to or from %d does not belong into this group", name,
                            peer);
        return leave(false);
    }
    uint64_t *counter = is_send ? &comm->n_sent[peer] : &comm->n_received[peer];
    g->comm = comm;
    g->stream = stream;
    g->ops[g->n++] =
        (struct op){.is_send = is_send, .peer = peer, .number = (*counter)++, .at = at, .n_bytes = n_bytes};
    return leave(true);
}

/* Outside a group it is a group of its own. */
ncclResult_t ncclSend(const void *at, size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    bool is_alone = !gathering;
    if (type != ncclUint8)
        return ncclInvalidArgument;
    ncclResult_t code = is_alone ? ncclGroupStart() : ncclSuccess;
    if (code == ncclSuccess)
        code = add("ncclSend", true, (char *)at, n, peer, comm, stream);
    ncclResult_t ended = is_alone && gathering ? ncclGroupEnd() : ncclSuccess;
    return code == ncclSuccess ? ended : code;
}

ncclResult_t ncclRecv(void *at, size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return type == ncclUint8 ? add("ncclRecv", false, at, n, peer, comm, stream) : ncclInvalidArgument;
}

/* Another thread may have given it up while the group was gathered. */
static bool is_there(const struct ncclComm *comm) {
    bool found = false;
    (void)fake_lock();
    for (const struct meeting *m = meetings; m; m = m->next) {
        for (int k = 0; k < m->n; k++)
            found |= m->members[k] == comm && !comm->is_aborted;
    }
    (void)fake_leave(cudaSuccess);
    return found;
}

static ncclResult_t enqueue(struct group *g, const struct cuda_range *ranges, int n_ranges) {
    const struct fake_meeting what = {.name = "NCCL",
                                      .is_ready = g->sum.is_it ? is_sum_ready : is_ready,
                                      .go_on = g->sum.is_it ? run_sum : run,
                                      .owner = g->comm,
                                      .payload = g,
                                      .payload_bytes = sizeof *g};
    if (!is_there(g->comm))
        return ncclInvalidUsage;
    return fake_enqueue_meeting(g->stream, ranges, n_ranges, &what) == cudaSuccess ? ncclSuccess
                                                                                   : ncclUnhandledCudaError;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t n, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
    struct group *g;
    if (gathering || type != ncclFloat32 || op != ncclSum)
        return ncclInvalidArgument;
    if (fake_call_fails("ncclAllReduce") || CVY_ALLOC(g, 1) != CVY_OK)
        return ncclSystemError;
    g->comm = comm;
    g->stream = stream;
    g->sum = (struct sum){.is_it = true, .number = comm->n_sums++, .from = from, .to = to, .n = n};
    const struct cuda_range ranges[] = {{(void *)from, n * sizeof(float), false},
                                        {to, n * sizeof(float), true}};
    ncclResult_t result = enqueue(g, ranges, 2);
    free(g);
    return result;
}

ncclResult_t ncclGroupEnd(void) {
    struct group *g = gathering;
    struct cuda_range ranges[MAX_OPS];
    ncclResult_t result = ncclSuccess;
    if (!g)
        return ncclInvalidUsage;
    gathering = NULL;
    for (int k = 0; k < g->n; k++)
        ranges[k] = (struct cuda_range){g->ops[k].at, g->ops[k].n_bytes, !g->ops[k].is_send};
    if (g->n > 0)
        result = enqueue(g, ranges, g->n);
    free(g);
    return result;
}

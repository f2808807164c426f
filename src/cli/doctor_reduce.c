/* doctor: floats added by two devices, as gradients are: are the sums right, and how fast is it? */
#include "cli/doctor_trial.h"

#include "base/mem.h"
#include "base/thread.h"
#include "rt/tree.h"

#include <stdlib.h>

enum { N_FLOATS = 4 << 20, MANY = 8 }; /* more devices: only neighbours meet */

static const double TIMEOUT_S = 30;

/* ---- pairs ----------------------------------------------------------------------------------------- */

static cvy_status open_pair(struct trial *t, int a, int b) {
    const struct cvy_group_spec spec = {.n = 2, .timeout_s = TIMEOUT_S};
    struct trial_pair *p = &t->pairs[t->n_pairs];
    struct cvy_device *devices[2] = {t->members[a].device, t->members[b].device};
    *p = (struct trial_pair){.member = {a, b}};
    CVY_TRY(t->transport->open(&spec, p->group));
    t->n_pairs++;
    p->on_devices = cvy_peers_find(devices, 2);
    for (int k = 0; k < 2 && p->on_devices; k++)
        p->on_devices->attach(p->group[k], devices[k]);
    return CVY_OK;
}

cvy_status doctor_pairs_open(struct trial *t) {
    int n = t->list.n;
    CVY_TRY(CVY_ALLOC(t->pairs, (size_t)n * (size_t)n));
    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n && (n <= MANY || b == a + 1); b++)
            CVY_TRY(open_pair(t, a, b));
    return CVY_OK;
}

void doctor_pairs_close(struct trial *t) {
    for (int p = 0; p < t->n_pairs; p++)
        t->transport->close(2, t->pairs[p].group);
    free(t->pairs);
    t->pairs = NULL;
    t->n_pairs = 0;
}

double doctor_pair_rate(const struct trial_pair *p) {
    double best = 0;
    for (int round = 0; round < TRIAL_ROUNDS; round++) {
        double a = p->seconds[0][round], b = p->seconds[1][round], seconds = a > b ? a : b;
        double rate = seconds > 0 ? N_FLOATS * sizeof(float) / seconds * 1e-9 : 0;
        best = rate > best ? rate : best;
    }
    return best;
}

/* ---- one meeting ----------------------------------------------------------------------------------- */

struct meeting {
    struct trial_member *me;
    struct trial_pair *pair;
    int side;     /* 0 or 1 */
    float *at;    /* on the device */
    float *host;  /* as many */
    bool is_host; /* the transport adds where the device computes */
};

/* Small whole numbers: their sums are exact. */
static float value_of(int rank, size_t i) { return (float)((i * 7 + (size_t)rank * 3) % 101); }

static cvy_status reduce(const struct meeting *m, const struct cvy_reduction *what) {
    const struct trial_pair *p = m->pair;
    const struct cvy_transport *transport = m->me->trial->transport;
    struct cvy_device *device = m->me->device;
    const size_t n_bytes = N_FLOATS * sizeof(float);
    if (p->on_devices) {
        CVY_TRY(p->on_devices->reduce(p->group[m->side], 0, what));
        return cvy_device_synchronize(device);
    }
    if (!m->is_host)
        CVY_TRY(device->backend->download(device, m->host, m->at, n_bytes));
    CVY_TRY(transport->reduce_start(p->group[m->side], 0, what));
    CVY_TRY(transport->reduce_wait(p->group[m->side], 0));
    return m->is_host ? CVY_OK : device->backend->upload(device, m->at, m->host, n_bytes);
}

static cvy_status check(const struct meeting *m) {
    const struct trial *t = m->me->trial;
    const int *rank = m->pair->member;
    struct cvy_device *device = m->me->device;
    CVY_TRY(device->backend->download(device, m->host, m->at, N_FLOATS * sizeof(float)));
    for (size_t i = 0; i < N_FLOATS; i++) {
        float expected = value_of(rank[0], i) + value_of(rank[1], i);
        if (m->host[i] != expected)
            return CVY_FAIL(CVY_ERR_FAILED, "%s and %s add up wrongly: element %zu of the sum is %g, not %g",
                            t->members[rank[0]].device->name, t->members[rank[1]].device->name, i,
                            (double)m->host[i], (double)expected);
    }
    return CVY_OK;
}

static cvy_status meet(const struct meeting *m) {
    struct trial_pair *p = m->pair;
    const struct cvy_transport *transport = m->me->trial->transport;
    struct cvy_group *group = p->group[m->side];
    const struct cvy_backend *backend = m->me->device->backend;
    struct cvy_partial partials[2];
    float *mine = p->on_devices || m->is_host ? m->at : m->host;
    for (int k = 0; k < 2; k++)
        cvy_tree_partials(2, 2, k, partials + k, NULL);
    const struct cvy_reduction what = {.name = "self-test",
                                       .n = N_FLOATS,
                                       .n_shards = 2,
                                       .n_partials = 2,
                                       .partials = partials,
                                       .mine = &mine,
                                       .result = mine};
    if (p->on_devices && p->on_devices->open)
        CVY_TRY(p->on_devices->open(group, transport));
    if (p->on_devices)
        CVY_TRY(p->on_devices->reserve(group, &what));
    for (size_t i = 0; i < N_FLOATS; i++)
        m->host[i] = value_of(m->me->rank, i);
    CVY_TRY(backend->upload(m->me->device, m->at, m->host, N_FLOATS * sizeof(float)));
    for (int round = 0; round < TRIAL_ROUNDS; round++) {
        CVY_TRY(transport->barrier(group, "self-test"));
        int64_t start = cvy_now_ns();
        CVY_TRY(reduce(m, &what));
        p->seconds[m->side][round] = (double)(cvy_now_ns() - start) * 1e-9;
        if (round == 0)
            CVY_TRY(check(m));
    }
    return transport->barrier(group, "end of the self-test");
}

cvy_status doctor_reduce(struct trial_member *me) {
    struct trial *t = me->trial;
    const struct cvy_backend *backend = me->device->backend;
    const size_t n_bytes = N_FLOATS * sizeof(float);
    struct meeting m = {.me = me, .is_host = backend->is_host_memory};
    void *at = NULL;
    double touch_s;
    cvy_status status;
    CVY_TRY_OUT(backend->alloc(me->device, n_bytes, &at, &touch_s));
    CVY_TRY_OUT(CVY_ALLOC(m.host, N_FLOATS));
    m.at = at;
    for (int p = 0; p < t->n_pairs; p++) {
        CVY_TRY_OUT(t->transport->barrier(me->group, "self-test of pairs"));
        m.pair = &t->pairs[p];
        m.side = m.pair->member[1] == me->rank;
        if (m.pair->member[m.side] == me->rank)
            CVY_TRY_OUT(meet(&m));
    }
    CVY_TRY_OUT(t->transport->barrier(me->group, "end of the pairs"));
out:
    if (at)
        backend->release(me->device, at, n_bytes);
    free(m.host);
    return status;
}

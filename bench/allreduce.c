/* How fast a transport reduces: one all-reduce of all members' floats, again and again.
 *
 *   usage: allreduce [MB] [MEMBERS] [ROUNDS]      45 MB, 2 members (a multiple of the processes), 31 rounds
 *
 * Alone: members are threads of this process, each on a core of its own; between the rounds each copies as many bytes,
 * all at the same moment, which is what the memory allows. Started by mpirun: members are spread over the processes.
 * Prints the median and the best, of the slowest member in each round; the sums are compared with what they must be.
 */
#include "base/thread.h"
#include "rt/comm.h"
#include "rt/tree.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_MEMBERS = 64, MAX_ROUNDS = 1001, N_WARM_UP = 3, TIMEOUT_S = 60 };

struct bench {
    const struct cvy_transport *transport;
    struct cvy_world *world;
    size_t n; /* floats */
    int n_members, n_rounds;
    struct member {
        struct bench *bench;
        struct cvy_group *group; /* NULL: in another process */
        int rank;
        struct cvy_error error;
        double reduce_s[MAX_ROUNDS], copy_s[MAX_ROUNDS];
    } * members;
};

static float *map_floats(size_t n) {
    size_t page = (size_t)2 << 20, n_bytes = (n * sizeof(float) + page - 1) / page * page;
    float *memory = aligned_alloc(page, n_bytes);
    if (memory) {
        madvise(memory, n_bytes, MADV_HUGEPAGE);
        memset(memory, 0, n_bytes);
    }
    return memory;
}

/* Sums of small whole numbers are exact, so every element can be checked. */
static float value_of(int rank, size_t i) { return (float)((i * 7 + (size_t)rank * 3) % 101); }

static cvy_status check(const struct bench *b, const float *sum) {
    for (size_t i = 0; i < b->n; i++) {
        float expected = 0;
        for (int m = 0; m < b->n_members; m++)
            expected += value_of(m, i);
        if (sum[i] != expected)
            return CVY_FAIL(CVY_ERR_FAILED, "element %zu is %g, not %g", i, (double)sum[i], (double)expected);
    }
    return CVY_OK;
}

static cvy_status run_rounds(struct member *me, float *memory, float *copy) {
    struct bench *b = me->bench;
    const struct cvy_transport *transport = b->transport;
    struct cvy_partial partials[MAX_MEMBERS];
    for (int m = 0; m < b->n_members; m++)
        cvy_tree_partials(b->n_members, b->n_members, m, partials + m, NULL);
    struct cvy_reduction what = {.name = "all",
                                 .n = b->n,
                                 .n_shards = b->n_members,
                                 .n_partials = b->n_members,
                                 .partials = partials,
                                 .mine = &memory,
                                 .result = memory};
    for (int round = 0; round < b->n_rounds + N_WARM_UP; round++) {
        for (size_t i = 0; i < b->n; i++)
            memory[i] = value_of(me->rank, i);
        CVY_TRY(transport->barrier(me->group, "reduce"));
        int64_t start = cvy_now_ns();
        CVY_TRY(transport->reduce_start(me->group, 0, &what));
        CVY_TRY(transport->reduce_wait(me->group, 0));
        int64_t reduced = cvy_now_ns();
        if (round < N_WARM_UP)
            CVY_TRY(check(b, memory));
        CVY_TRY(transport->barrier(me->group, "copy"));
        int64_t begin = cvy_now_ns();
        memcpy(copy, memory, b->n * sizeof *copy);
        int64_t end = cvy_now_ns();
        if (round >= N_WARM_UP) {
            me->reduce_s[round - N_WARM_UP] = (double)(reduced - start) * 1e-9;
            me->copy_s[round - N_WARM_UP] = (double)(end - begin) * 1e-9;
        }
    }
    return transport->barrier(me->group, "end");
}

static void *member_main(void *argument) {
    struct member *me = argument;
    cpu_set_t allowed, mine;
    int n_local = me->bench->n_members / (me->bench->world ? me->bench->world->size : 1), n_cores = 0;
    CPU_ZERO(&allowed);
    CPU_ZERO(&mine);
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int core = 0; core < CPU_SETSIZE && n_local <= CPU_COUNT(&allowed); core++) {
        if (CPU_ISSET(core, &allowed) && n_cores++ % n_local == me->rank % n_local)
            CPU_SET(core, &mine);
    }
    if (CPU_COUNT(&mine) > 0)
        sched_setaffinity(0, sizeof mine, &mine);
    float *memory = map_floats(me->bench->n), *copy = map_floats(me->bench->n);
    cvy_status status =
        memory && copy ? run_rounds(me, memory, copy) : CVY_FAIL(CVY_ERR_MEMORY, "out of memory");
    if (status != CVY_OK)
        me->bench->transport->abort(me->group, cvy_error());
    cvy_error_save(&me->error, status);
    free(memory);
    free(copy);
    return NULL;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Of the slowest member here in each round. */
static void print_times(const struct bench *b, const char *what, size_t offset) {
    double s[MAX_ROUNDS];
    for (int round = 0; round < b->n_rounds; round++) {
        s[round] = 0;
        for (int m = 0; m < b->n_members; m++) {
            const double *of = (const double *)((const char *)&b->members[m] + offset);
            s[round] = b->members[m].group && of[round] > s[round] ? of[round] : s[round];
        }
    }
    qsort(s, (size_t)b->n_rounds, sizeof *s, compare);
    double bytes = (double)b->n * sizeof(float);
    printf("%s: median %.3f ms, best %.3f ms, %.2f GB/s\n", what, s[b->n_rounds / 2] * 1e3, s[0] * 1e3,
           bytes / s[b->n_rounds / 2] * 1e-9);
}

static cvy_status run(struct bench *b) {
    struct cvy_group *groups[MAX_MEMBERS];
    int32_t process[MAX_MEMBERS];
    pthread_t threads[MAX_MEMBERS];
    cvy_status status = CVY_OK;
    for (int m = 0; m < b->n_members; m++)
        process[m] = b->world ? m * b->world->size / b->n_members : 0;
    struct cvy_group_spec spec = {.world = b->world, .n = b->n_members, .timeout_s = TIMEOUT_S};
    if (b->world)
        spec.process = process;
    CVY_TRY(b->transport->open(&spec, groups));
    for (int m = 0; m < b->n_members; m++) {
        b->members[m].bench = b;
        b->members[m].rank = m;
        b->members[m].group = groups[m];
        if (groups[m])
            CVY_TRY(cvy_thread_start(&threads[m], "member", member_main, &b->members[m]));
    }
    for (int m = 0; m < b->n_members; m++) {
        if (!groups[m])
            continue;
        pthread_join(threads[m], NULL);
        if (status == CVY_OK && b->members[m].error.code != CVY_OK)
            status = cvy_error_restore(&b->members[m].error);
    }
    if (status == CVY_OK && (!b->world || b->world->rank == 0)) {
        print_times(b, "reduce", offsetof(struct member, reduce_s));
        print_times(b, "copy", offsetof(struct member, copy_s));
    }
    b->transport->close(b->n_members, groups);
    return status;
}

int main(int argc, char **argv) {
    double mb = argc > 1 ? atof(argv[1]) : 45;
    struct bench b = {.n = (size_t)(mb * 1e6 / sizeof(float)),
                      .n_members = argc > 2 ? atoi(argv[2]) : 2,
                      .n_rounds = argc > 3 ? atoi(argv[3]) : 31,
                      .transport = cvy_transport_launched()};
    if (b.n_members < 1 || b.n_members > MAX_MEMBERS || b.n_rounds < 1 || b.n_rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: allreduce [MB] [MEMBERS, up to %d] [ROUNDS, up to %d]\n", MAX_MEMBERS,
                MAX_ROUNDS);
        return 2;
    }
    b.members = calloc((size_t)b.n_members, sizeof *b.members);
    if (!b.members)
        return 1;
    cvy_status status = b.transport ? b.transport->join(TIMEOUT_S, &(cvy_log_sink){0}, &b.world) : CVY_OK;
    if (!b.transport)
        b.transport = cvy_transport_find("threads");
    if (status == CVY_OK)
        status = run(&b);
    if (status != CVY_OK)
        fprintf(stderr, "%s [%s]\n", cvy_error(), cvy_error_trace());
    if (b.world && b.transport->leave(b.world, status == CVY_OK ? NULL : cvy_error()) != CVY_OK)
        fprintf(stderr, "%s [%s]\n", cvy_error(), cvy_error_trace());
    free(b.members);
    return cvy_exit_code(status);
}

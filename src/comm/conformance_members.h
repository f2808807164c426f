/* The members of a group under test: threads that report through their statuses and messages, since only the
   main thread may assert. */
#ifndef CVY_COMM_CONFORMANCE_MEMBERS_H
#define CVY_COMM_CONFORMANCE_MEMBERS_H

#include "base/thread.h"
#include "cvy_test.h"
#include "rt/comm.h"

#include <string.h>

enum { MAX_MEMBERS = 16 };

enum { MAX_WORLDS = 8, SHARED_BYTES = 4096 };

/* Which transport is tested, and among which processes: every process runs the whole suite, with its share of the
   members, and judges those alone. */
struct suite {
    const struct cvy_transport *transport;
    int n_worlds; /* 0: no processes but this one; more than one: a test that plays several */
    struct cvy_world *worlds[MAX_WORLDS];
    struct cvy_group *meeting; /* of several processes, so that they begin each case together */
    void *shared;              /* SHARED_BYTES that all processes see */
};

struct member {
    const struct cvy_transport *transport;
    struct cvy_group *group; /* NULL: in another process */
    int rank, n;
    void *context; /* the test's */
    cvy_status (*main)(struct member *me);
    struct cvy_error error; /* code and message of main */
    double took_s;
};

static void *member_thread(void *argument) {
    struct member *me = argument;
    int64_t start = cvy_now_ns();
    cvy_error_save(&me->error, me->main(me));
    me->took_s = (double)(cvy_now_ns() - start) * 1e-9;
    return NULL;
}

static void meet(const struct suite *suite) {
    if (suite->meeting && suite->transport->barrier(suite->meeting, "next case") != CVY_OK)
        fail_msg("the processes do not meet: %s", cvy_error());
}

/* A place that the members of all processes share, zeroed. */
static void *shared_place(const struct suite *suite) {
    meet(suite);
    if (suite->n_worlds == 0 || suite->worlds[0]->rank == 0)
        memset(suite->shared, 0, SHARED_BYTES);
    meet(suite);
    return suite->shared;
}

struct opened {
    struct cvy_group *by_world[MAX_WORLDS][MAX_MEMBERS];
    struct cvy_group *here[MAX_MEMBERS]; /* NULL: in another process */
};

/* Members are spread in blocks over the processes. */
static void open_members(const struct suite *suite, int n, double timeout_s, struct opened *groups) {
    int32_t process[MAX_MEMBERS];
    struct cvy_group_spec spec = {.n = n, .timeout_s = timeout_s};
    memset(groups, 0, sizeof *groups);
    for (int m = 0; m < n && suite->n_worlds > 0; m++)
        process[m] = m * suite->worlds[0]->size / n;
    meet(suite);
    for (int w = 0; w < suite->n_worlds || w == 0; w++) {
        if (suite->n_worlds > 0) {
            spec.world = suite->worlds[w];
            spec.process = process;
        }
        if (suite->transport->open(&spec, groups->by_world[w]) != CVY_OK)
            fail_msg("a group of %d cannot open: %s", n, cvy_error());
        for (int m = 0; m < n; m++) {
            if (groups->by_world[w][m])
                groups->here[m] = groups->by_world[w][m];
        }
    }
}

static void close_members(const struct suite *suite, int n, struct opened *groups) {
    for (int w = 0; w < suite->n_worlds || w == 0; w++)
        suite->transport->close(n, groups->by_world[w]);
}

/* Runs n members to their ends, those of this process; their statuses are for the caller to judge. */
static void run_members(const struct suite *suite, int n, double timeout_s,
                        cvy_status (*member_main)(struct member *), void *context, struct member *members) {
    struct opened groups;
    pthread_t threads[MAX_MEMBERS];
    open_members(suite, n, timeout_s, &groups);
    for (int m = 0; m < n; m++) {
        members[m] = (struct member){.transport = suite->transport,
                                     .group = groups.here[m],
                                     .rank = m,
                                     .n = n,
                                     .context = context,
                                     .main = member_main};
        if (members[m].group)
            assert_int_equal(cvy_thread_start(&threads[m], "member", member_thread, &members[m]), CVY_OK);
    }
    for (int m = 0; m < n; m++) {
        if (members[m].group)
            pthread_join(threads[m], NULL);
    }
    close_members(suite, n, &groups);
}

static void run_members_ok(const struct suite *suite, int n, cvy_status (*member_main)(struct member *),
                           void *context) {
    struct member members[MAX_MEMBERS];
    run_members(suite, n, 60, member_main, context, members);
    for (int m = 0; m < n; m++) {
        if (members[m].error.code != CVY_OK)
            fail_msg("member %d of %d: %s", m, n, members[m].error.message);
    }
}

static void assert_code(const struct member *member, cvy_status code) {
    if (member->group && member->error.code != code)
        fail_msg("member %d: status %d, not %d: %s", member->rank, member->error.code, code,
                 member->error.message);
}

/* The member ended soon with CVY_ERR_LOST and a message that says `part`. */
static void assert_lost(const struct member *member, const char *part) {
    if (!member->group)
        return;
    if (member->error.code != CVY_ERR_LOST || !strstr(member->error.message, part))
        fail_msg("member %d: status %d, \"%s\" does not say \"%s\"", member->rank, member->error.code,
                 member->error.message, part);
    assert_true(member->took_s < 5);
}

/* It had to wait for its deadline of 1 s. */
static void assert_waited(const struct member *member) {
    if (member->group)
        assert_true(member->took_s > 0.5);
}

#endif

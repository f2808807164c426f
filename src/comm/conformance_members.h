/* The members of a group under test: threads that report through their statuses and messages, since only the
   main thread may assert. */
#ifndef CVY_COMM_CONFORMANCE_MEMBERS_H
#define CVY_COMM_CONFORMANCE_MEMBERS_H

#include "base/thread.h"
#include "cvy_test.h"
#include "rt/comm.h"

#include <string.h>

enum { MAX_MEMBERS = 16 };

struct member {
    const struct cvy_transport *transport;
    struct cvy_group *group;
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

/* Runs n members to their ends; their statuses are for the caller to judge. */
static void run_members(const struct cvy_transport *transport, int n, double timeout_s,
                        cvy_status (*member_main)(struct member *), void *context, struct member *members) {
    struct cvy_group *groups[MAX_MEMBERS];
    pthread_t threads[MAX_MEMBERS];
    assert_int_equal(transport->open(&(struct cvy_group_spec){.n = n, .timeout_s = timeout_s}, groups),
                     CVY_OK);
    for (int m = 0; m < n; m++) {
        members[m] = (struct member){.transport = transport,
                                     .group = groups[m],
                                     .rank = m,
                                     .n = n,
                                     .context = context,
                                     .main = member_main};
        assert_int_equal(cvy_thread_start(&threads[m], "member", member_thread, &members[m]), CVY_OK);
    }
    for (int m = 0; m < n; m++)
        pthread_join(threads[m], NULL);
    transport->close(n, groups);
}

static void run_members_ok(const struct cvy_transport *transport, int n,
                           cvy_status (*member_main)(struct member *), void *context) {
    struct member members[MAX_MEMBERS];
    run_members(transport, n, 60, member_main, context, members);
    for (int m = 0; m < n; m++) {
        if (members[m].error.code != CVY_OK)
            fail_msg("member %d of %d: %s", m, n, members[m].error.message);
    }
}

/* The member ended soon with CVY_ERR_LOST and a message that says `part`. */
static void assert_lost(const struct member *member, const char *part) {
    if (member->error.code != CVY_ERR_LOST || !strstr(member->error.message, part))
        fail_msg("member %d: status %d, \"%s\" does not say \"%s\"", member->rank, member->error.code,
                 member->error.message, part);
    assert_true(member->took_s < 5);
}

#endif

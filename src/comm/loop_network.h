/* A network for tests: the "processes" are worlds in one process, so that the sanitizers see all of the transport, and
   so that tests can break it. Half of the messages wait in the network for their receiver (as small ones do), half stay
   with the sender until somebody wants them (as large ones do); what is done is known only after some looks. */
#ifndef CVY_COMM_LOOP_NETWORK_H
#define CVY_COMM_LOOP_NETWORK_H

#include "base/rng.h"
#include "comm/processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOP_MOST = 8 };

struct loop_message { /* a send or a receive */
    bool is_send;
    int from, to, tag;
    bool is_waiting;        /* for its partner */
    bool is_done, is_known; /* known: its owner asked, or never does */
    void *bytes, *copy;     /* copy: the network's own */
    size_t n_bytes;
    struct loop_message *next;
};

/* The tests' network: only one at a time. */
static struct loop {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int size, n_open, n_exchanged;
    int broken; /* this rank's sends fail; -1 */
    bool never_exchange;
    const void *exchanged[LOOP_MOST];
    struct loop_message *messages; /* the oldest first */
    struct cvy_rng rng;
    struct loop_node {
        int rank;
    } nodes[LOOP_MOST];
} loop = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* With the lock: frees messages that nobody needs any more, or all. */
static void loop_sweep(bool is_all) {
    for (struct loop_message **at = &loop.messages; *at;) {
        struct loop_message *message = *at;
        if (!is_all && (message->is_waiting || !message->is_known)) {
            at = &message->next;
            continue;
        }
        *at = message->next;
        free(message->copy);
        free(message);
    }
}

static void loop_reset(int size) {
    loop_sweep(true);
    loop.size = size;
    loop.n_open = loop.n_exchanged = 0;
    loop.broken = -1;
    loop.never_exchange = false;
    cvy_rng_init(&loop.rng, 3, CVY_RNG_TEST, (uint64_t)size, 0);
}

static int loop_open(void **self, int *rank, int *size, int *max_tag, char *error) {
    (void)error;
    pthread_mutex_lock(&loop.lock);
    struct loop_node *node = &loop.nodes[loop.n_open];
    node->rank = loop.n_open++;
    *self = node;
    *rank = node->rank;
    *size = loop.size;
    *max_tag = 1 << 20;
    pthread_mutex_unlock(&loop.lock);
    return 0;
}

static int loop_exchange(void *self, const void *mine, void *all, size_t n_bytes, char *error) {
    const struct loop_node *node = self;
    (void)error;
    pthread_mutex_lock(&loop.lock);
    loop.exchanged[node->rank] = mine;
    loop.n_exchanged++;
    pthread_cond_broadcast(&loop.changed);
    while (loop.n_exchanged < loop.size || loop.never_exchange)
        pthread_cond_wait(&loop.changed, &loop.lock);
    for (int rank = 0; rank < loop.size; rank++)
        memcpy((char *)all + (size_t)rank * n_bytes, loop.exchanged[rank], n_bytes);
    loop.n_exchanged++; /* `mine` must stay until all have copied it */
    pthread_cond_broadcast(&loop.changed);
    while (loop.n_exchanged < 2 * loop.size)
        pthread_cond_wait(&loop.changed, &loop.lock);
    pthread_mutex_unlock(&loop.lock);
    return 0;
}

static bool loop_fits(const struct loop_message *a, const struct loop_message *b) {
    const struct loop_message *send = a->is_send ? a : b, *receive = a->is_send ? b : a;
    return a->is_send != b->is_send && a->is_waiting && b->is_waiting && send->to == receive->to &&
           send->tag == receive->tag && (receive->from == CVY_NETWORK_ANY || receive->from == send->from);
}

/* With the lock: adds a message, and passes its bytes on if the partner is there. */
static int loop_add(const struct loop_message *form, struct cvy_network_request *out, char *error) {
    struct loop_message *fresh = malloc(sizeof *fresh), **at = &loop.messages;
    if (!fresh)
        abort();
    *fresh = *form;
    fresh->is_waiting = true;
    out->word[0] = (uint64_t)(uintptr_t)fresh;
    struct loop_message *partner = loop.messages;
    while (partner && !loop_fits(partner, fresh))
        partner = partner->next;
    while (*at)
        at = &(*at)->next;
    *at = fresh;
    if (!partner)
        return 0;
    const struct loop_message *send = fresh->is_send ? fresh : partner,
                              *receive = fresh->is_send ? partner : fresh;
    if (send->n_bytes > receive->n_bytes) {
        snprintf(error, CVY_NETWORK_ERROR, "a message of %zu bytes for %zu", send->n_bytes, receive->n_bytes);
        return -1;
    }
    memcpy(receive->bytes, send->copy ? send->copy : send->bytes, send->n_bytes);
    fresh->is_waiting = partner->is_waiting = false;
    fresh->is_done = partner->is_done = true;
    return 0;
}

static int loop_isend(void *self, int peer, int tag, const void *bytes, size_t n_bytes,
                      struct cvy_network_request *out, char *error) {
    const struct loop_node *node = self;
    int result = -1;
    struct loop_message send = {.is_send = true,
                                .from = node->rank,
                                .to = peer,
                                .tag = tag,
                                .bytes = (void *)bytes,
                                .n_bytes = n_bytes};
    pthread_mutex_lock(&loop.lock);
    if (cvy_rng_below(&loop.rng, 2) == 0) { /* the network keeps a copy; the sender is done at once */
        send.copy = malloc(n_bytes + 1);
        if (!send.copy)
            abort();
        memcpy(send.copy, bytes, n_bytes);
        send.is_done = true;
    }
    if (loop.broken == node->rank) {
        free(send.copy);
        snprintf(error, CVY_NETWORK_ERROR, "the cable of rank %d is broken", node->rank);
    } else {
        result = loop_add(&send, out, error);
    }
    pthread_mutex_unlock(&loop.lock);
    return result;
}

static int loop_irecv(void *self, int peer, int tag, void *bytes, size_t n_bytes,
                      struct cvy_network_request *out, char *error) {
    const struct loop_node *node = self;
    const struct loop_message receive = {
        .from = peer, .to = node->rank, .tag = tag, .bytes = bytes, .n_bytes = n_bytes};
    pthread_mutex_lock(&loop.lock);
    int result = loop_add(&receive, out, error);
    pthread_mutex_unlock(&loop.lock);
    return result;
}

static int loop_test(void *self, struct cvy_network_request *request, int *is_done, char *error) {
    struct loop_message *message = (struct loop_message *)(uintptr_t)request->word[0];
    (void)self;
    (void)error;
    pthread_mutex_lock(&loop.lock);
    *is_done = message->is_done && cvy_rng_below(&loop.rng, 2) == 0;
    message->is_known = *is_done;
    if (*is_done)
        loop_sweep(false);
    pthread_mutex_unlock(&loop.lock);
    return 0;
}

static int loop_cancel(void *self, struct cvy_network_request *request, char *error) {
    struct loop_message *message = (struct loop_message *)(uintptr_t)request->word[0];
    (void)self;
    (void)error;
    pthread_mutex_lock(&loop.lock);
    if (!message->is_send && message->is_waiting) {
        message->is_waiting = false;
        message->is_done = true;
    }
    pthread_mutex_unlock(&loop.lock);
    return 0;
}

/* Messages that nobody took, of groups that were given up, go with the next run. */
static int loop_close(void *self, char *error) {
    (void)self;
    (void)error;
    return 0;
}

static const struct cvy_network loop_network = {
    .abi = CVY_NETWORK_ABI,
    .name = "loop",
    .piece_bytes = 1024, /* so that small sums take many */
    .open = loop_open,
    .exchange = loop_exchange,
    .isend = loop_isend,
    .irecv = loop_irecv,
    .test = loop_test,
    .cancel = loop_cancel,
    .close = loop_close,
};

#endif

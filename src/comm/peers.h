/* From device to device, within a process: for devices that reach each other's memory (struct cvy_peers).
   A private part of the transports. */
#ifndef CVY_COMM_PEERS_H
#define CVY_COMM_PEERS_H

#include "comm/hub.h"

struct cvy_peer_state {  /* of a member */
    void *posted, *done; /* its marks of the present meeting */
    float *scratch;      /* nodes of the tree between partial sums and root */
    size_t scratch_bytes;
};

struct cvy_peer_ring { /* of a link: the bytes of its messages, in the sender's memory */
    struct cvy_device *owner;
    char *memory; /* `capacity` places */
    size_t place_bytes;
    int capacity;
    void **sent, **received; /* [capacity] the marks of each place */
};

/* Both accept what was never made. After all members returned. */
void cvy_peer_state_free(struct cvy_group *member);
void cvy_peer_ring_free(struct cvy_peer_ring *ring);

/* peers_links.c */
cvy_status cvy_peers_link_open(struct cvy_group *me, int number, int from, int to, size_t n_bytes,
                               int capacity);
cvy_status cvy_peers_send(struct cvy_group *me, int number, int32_t tag, const struct cvy_piece *pieces,
                          int n, const char *name);
cvy_status cvy_peers_recv(struct cvy_group *me, int number, int32_t tag, const struct cvy_piece *pieces,
                          int n, const char *name);

#endif

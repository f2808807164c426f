/* From device to device over a network of their own (struct cvy_net).
   A private part of the transports. */
#ifndef CVY_COMM_NET_H
#define CVY_COMM_NET_H

#include "comm/hub.h"

/* Gives the member's network up, so that what is enqueued ends; of a member that has one. Any thread. */
void cvy_net_abort(struct cvy_group *member);
/* Accepts what was never made. After all members returned. */
void cvy_net_state_free(struct cvy_group *member);
/* What was begun must end, also after a failure, which then counts. */
cvy_status cvy_net_end_after(struct cvy_group *me, void *net, cvy_status status);

/* net_links.c */
void cvy_net_links_abort(struct cvy_group *member);
void cvy_net_links_free(struct cvy_group *member);
cvy_status cvy_net_link_open(struct cvy_group *me, int number, int from, int to, size_t n_bytes,
                             int capacity);
cvy_status cvy_net_send(struct cvy_group *me, int number, int32_t tag, const struct cvy_piece *pieces, int n,
                        const char *name);
cvy_status cvy_net_recv(struct cvy_group *me, int number, int32_t tag, const struct cvy_piece *pieces, int n,
                        const char *name);

#endif

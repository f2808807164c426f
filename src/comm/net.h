/* From device to device over a network of their own (struct cvy_net).
   A private part of the transports. */
#ifndef CVY_COMM_NET_H
#define CVY_COMM_NET_H

#include "comm/hub.h"

/* Gives the member's network up, so that what is enqueued ends; of a member that has one. Any thread. */
void cvy_net_abort(struct cvy_group *member);
/* Accepts what was never made. After all members returned. */
void cvy_net_state_free(struct cvy_group *member);

#endif

/* Where rank 0 listens, as a text: "TOKEN HOST:PORT HOST:PORT ...", IPv6 hosts in brackets. */
#ifndef CVY_COMM_CONTROL_ADDRESS_H
#define CVY_COMM_CONTROL_ADDRESS_H

#include "base/status.h"

#include <sys/socket.h>

enum { CVY_CONTROL_TOKEN = 32, CVY_CONTROL_MAX_PLACES = 64 };

struct cvy_control_places {
    char token[CVY_CONTROL_TOKEN + 1];
    int n;
    struct sockaddr_storage at[CVY_CONTROL_MAX_PLACES];
    const char *text; /* of all places */
};

/* Listens on a port of the system's choice on all interfaces, and writes token and places: those that other machines
   reach come first, loopback last; as many as fit. Owner of *fd: the caller. CVY_ERR_IO. Local. */
cvy_status cvy_control_open_listener(char *text, size_t n_bytes, int *fd);
/* CVY_ERR_USAGE: no such text. `text` must live as long as `out`. Local. */
cvy_status cvy_control_parse_places(const char *text, struct cvy_control_places *out);

/* A socket that connects, without waiting; -1 with errno. Owner: the caller. Local. */
int cvy_control_begin_connect(const struct sockaddr_storage *at);
/* The next caller's connection; -1 with errno. Owner: the caller. Local. */
int cvy_control_accept(int listener);

#endif

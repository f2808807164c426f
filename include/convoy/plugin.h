/* The door for plugins: what a library that is loaded at run time must offer. Plain C types alone, so that a plugin
   uses nothing of libconvoy and neither side has to be built with the other.
   Of now: networks, which carry bytes between the processes of a run (libconvoy_mpi_openmpi.so, _mpich.so). */
#ifndef CONVOY_PLUGIN_H
#define CONVOY_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

enum {
    CVY_NETWORK_ABI = 1,
    CVY_NETWORK_ERROR = 256, /* bytes of an error's text, its end included */
    CVY_NETWORK_ANY = -1,    /* as `peer` of a receive: from whomever */
};
#define CVY_NETWORK_SYMBOL "cvy_plugin_network" /* const struct cvy_network cvy_plugin_network */

struct cvy_network_request { /* a message under way; its owner keeps it where it is until it is done */
    uint64_t word[2];
};

/* Each function gives 0, or -1 with the reason in `error`. All are called by one thread, the one that called open.
   Nothing but open, exchange and close may wait for another process. */
struct cvy_network {
    uint32_t abi;       /* CVY_NETWORK_ABI */
    const char *name;   /* "Open MPI" */
    size_t piece_bytes; /* in messages of which size data should be sent */
    /* Meets the other processes; once in a process. Tags are 0 .. *max_tag. Collective. */
    int (*open)(void **self, int *rank, int *size, int *max_tag, char error[CVY_NETWORK_ERROR]);
    /* Everybody's n_bytes, by rank, into `all`. Collective. */
    int (*exchange)(void *self, const void *mine, void *all, size_t n_bytes, char error[CVY_NETWORK_ERROR]);
    /* The bytes stay as they are, and the sender's, until the request is done. Those of one sender with one tag
       arrive in order. At most INT_MAX bytes. Local. */
    int (*isend)(void *self, int peer, int tag, const void *bytes, size_t n_bytes,
                 struct cvy_network_request *out, char error[CVY_NETWORK_ERROR]);
    /* A message of up to n_bytes. Local. */
    int (*irecv)(void *self, int peer, int tag, void *bytes, size_t n_bytes, struct cvy_network_request *out,
                 char error[CVY_NETWORK_ERROR]);
    /* Is it done? If so it is released. Moves all messages on. Local. */
    int (*test)(void *self, struct cvy_network_request *request, int *is_done, char error[CVY_NETWORK_ERROR]);
    /* Nobody wants it any more; it must still be tested until it is done. Local. */
    int (*cancel)(void *self, struct cvy_network_request *request, char error[CVY_NETWORK_ERROR]);
    /* Collective. */
    int (*close)(void *self, char error[CVY_NETWORK_ERROR]);
};

#endif

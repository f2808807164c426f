/* Faults that a test orders through the environment, so that a run meets what a broken device would do:
     CVY_ASYNC_FAIL="device=1,step=3,op=conv2d"             that operator fails
     CVY_ASYNC_STALL="device=2,step=3,op=reduce,seconds=5"  it takes so long; without seconds: for ever
   Of device, step and op those that are not given mean any. op: an operator, or "upload", "download", "ingest", "add",
   "zero", "send", "recv", "reduce", "broadcast". A stall comes once. */
#ifndef CVY_ASYNC_FAULTS_H
#define CVY_ASYNC_FAULTS_H

#include "backends/async/order.h"

struct async_fault {
    bool is_on;
    int64_t step; /* -1: any */
    int64_t n;    /* the n-th that is meant, from 1; 0: each of them */
    int64_t n_met;
    char op[32]; /* "": any */
    double seconds;
};

/* The fault that an environment variable orders for device `index`. `form` says which keys it may have:
   "device=N,op=NAME". CVY_ERR_USAGE for what cannot be read. */
cvy_status async_fault_read(const char *variable, const char *form, int index, struct async_fault *out);
/* Is it this one's turn? Counts. */
bool async_fault_is_due(struct async_fault *fault, const struct async_what *what);

struct async_faults {
    struct async_fault fail, stall;
    double timeout_s; /* a stall that lasts longer is CVY_ERR_LOST */
};

/* Those for device `index`. CVY_ERR_USAGE for what cannot be read. */
cvy_status async_faults_read(int index, double timeout_s, struct async_faults *out);
/* Before something runs: fails, or waits, if it was ordered to. */
cvy_status async_faults_meet(struct async_faults *faults, const char *device, const struct async_what *what);

#endif

/* Happens-before: is every access to device memory ordered with those before it that it conflicts with?
   What counts is what streams, events and the host's waits order, never what happened to run first; so one run finds
   every wait that is missing, whatever the order in which it runs.

   Accesses are numbered as they are enqueued. A vector clock holds, for each stream, the newest number in it that is
   known to come before; the clock of an access is that of its stream, which grows by events, joined with what the
   host has waited for. For every 64 bytes of memory the last write and each stream's last read since are kept: an
   access is sound when its clock covers the last write, and, if it writes, those reads too.

   The stand-in for CUDA (tests/fakecuda) is built with it too. */
#ifndef CVY_ASYNC_ORDER_H
#define CVY_ASYNC_ORDER_H

#include "rt/program.h"

enum { ASYNC_ORDER_STREAMS = 64 }; /* at most */

struct async_what {          /* whose access it is */
    const char *op;          /* operator, "upload", "send" */
    const char *stream_name; /* NULL: "stream 1" */
    struct cvy_instr instr;
    bool has_instr;
    int stream;
    uint64_t step;
};

struct async_clock {
    uint32_t at[ASYNC_ORDER_STREAMS];
};

struct async_mark { /* what a record of an event stands for */
    uint32_t epoch; /* 0: never recorded */
    struct async_clock clock;
};

/* Of 64 bytes; what stands there counts in its epoch only. Behind the first two the last reads by each stream. */
enum { ASYNC_EPOCH, ASYNC_WRITTEN, ASYNC_READ };

struct async_arena {
    char *memory;
    size_t n_bytes;
    uint32_t *granules; /* ASYNC_READ + n_streams numbers for each 64 bytes */
};

struct async_part { /* a named part of an arena */
    const char *at;
    size_t n_bytes;
    char name[24];
};

struct async_order {
    const char *device; /* its name, for messages */
    int n_streams;      /* may grow */
    uint32_t epoch;     /* since the host last waited for everything; from 1 */
    struct async_clock host, streams[ASYNC_ORDER_STREAMS];
    struct async_mark events[CVY_N_EVENTS];
    CVY_VEC(struct async_what) log; /* access number n of this epoch stands at n - 1 */
    CVY_VEC(struct async_arena) arenas;
    CVY_VEC(struct async_part) parts;
};

/* With at most ASYNC_ORDER_STREAMS streams. */
void async_order_open(struct async_order *order, const char *device, int n_streams);
void async_order_free(struct async_order *order);

/* Memory that accesses may lie in. */
cvy_status async_order_add(struct async_order *order, void *memory, size_t n_bytes);
void async_order_remove(struct async_order *order, void *memory);
/* Names a part of it; failing to is no failure. */
void async_order_name(struct async_order *order, const void *at, size_t n_bytes, const char *name);

/* The next thing in its stream. CVY_ERR_FAILED when one of its accesses is not ordered with an earlier one, naming
   both and where, or lies outside the memory. */
cvy_status async_order_access(struct async_order *order, const struct async_what *what,
                              const struct cvy_access *accesses, int n);

/* What follows in stream `after` comes after what the mark was set behind; nothing to do when the host has waited for
   everything since. */
void async_order_mark(const struct async_order *order, int stream, struct async_mark *out);
void async_order_follow(struct async_order *order, int after, const struct async_mark *mark);
/* The same with marks by number. CVY_ERR_FAILED when there was no such record in this epoch. */
void async_order_record(struct async_order *order, int stream, int event);
cvy_status async_order_wait(struct async_order *order, int stream, int event);
/* The host has waited for this stream. */
void async_order_host(struct async_order *order, int stream);
/* One of several hosts has waited for it: this orders only what async_order_follow is told to follow this host's
   mark. */
void async_order_one_host(const struct async_order *order, int stream, struct async_mark *host);
/* The same host has waited for what the mark was set behind. */
void async_order_one_host_mark(const struct async_order *order, const struct async_mark *mark,
                               struct async_mark *host);
/* The host has waited for all of them: a new epoch begins. */
void async_order_settle(struct async_order *order);

/* "conv2d of run F0 shard 1 slot 0", "upload". */
void async_what_print(const struct async_what *what, struct cvy_text *out);

#endif

/* One TCP connection of the control connection: whole messages in and out, without waiting.
   Only its owner's thread opens, closes and reads; sending needs the owner's lock. */
#ifndef CVY_COMM_CONTROL_LINE_H
#define CVY_COMM_CONTROL_LINE_H

#include "base/vec.h"
#include "comm/control_wire.h"

#include <stdbool.h>

enum { CVY_CONTROL_TAG = 120 }; /* bytes of a note */

enum cvy_line_state {
    CVY_LINE_NONE = 0, /* fd is -1 */
    CVY_LINE_STRANGER, /* has not said who it is */
    CVY_LINE_WELCOMED, /* has, but has not started yet */
    CVY_LINE_UP,       /* beats are due */
    CVY_LINE_PARTED,   /* said goodbye */
    CVY_LINE_LOST,     /* silent for too long; open, so that it learns so should it wake */
};

struct cvy_line {
    int fd;
    enum cvy_line_state state;
    int rank;          /* of the other end, once it said so */
    int64_t since_ns;  /* when a stranger came */
    int64_t heard_ns;  /* the owner's awake time at the last byte */
    uint64_t sequence; /* the other end's last note; tag "" is none */
    char tag[CVY_CONTROL_TAG + 1];
    bool is_mute; /* sending failed; what is still to be read says why */
    CVY_VEC(unsigned char) unsent;
    size_t n_in;
    unsigned char in[CVY_CONTROL_FRAME];
};

/* Takes fd, which must not block. Local. */
void cvy_line_open(struct cvy_line *line, int fd, enum cvy_line_state state, int64_t now_ns);
/* Closes it and forgets everything. Accepts a closed one. Local. */
void cvy_line_close(struct cvy_line *line);

/* Reads what is there, once: > 0, 0: end of file, -1 with errno; EAGAIN: nothing was there. Local. */
ssize_t cvy_line_read(struct cvy_line *line);
/* The next whole message that was read: 1, 0: there is none, -1: the other end speaks another language. Local. */
int cvy_line_next(struct cvy_line *line, struct cvy_control_message *out);

/* Sends a message, or keeps what the network does not take yet for cvy_line_flush. Local. */
void cvy_line_send(struct cvy_line *line, const struct cvy_control_message *message);
void cvy_line_flush(struct cvy_line *line);
/* Has the other machine all that was sent? True also when it can get nothing any more. Local. */
bool cvy_line_is_drained(const struct cvy_line *line);

#endif

/* The messages of the control connection: a header of fixed size in network order, then one line of text.

   bytes 0-3 "cvy1"   4-7 type   8-11 rank   12-15 group   16-23 sequence   24-27 length of the text   28- text */
#ifndef CVY_COMM_CONTROL_WIRE_H
#define CVY_COMM_CONTROL_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum cvy_control_type { /* from whom to whom; 0 is rank 0, r another */
                        CVY_CONTROL_HELLO =
                            1, /* r -> 0  group: how many processes r counts; text: the token */
                        CVY_CONTROL_WELCOME = 2,  /* 0 -> r  you are at the right place */
                        CVY_CONTROL_REFUSE = 3,   /* 0 -> r  text: why you are not */
                        CVY_CONTROL_READY = 4,    /* r -> 0  r has started: events can reach it */
                        CVY_CONTROL_ALL_HERE = 5, /* 0 -> r  all have started */
                        CVY_CONTROL_BEAT =
                            6, /* both    sequence, text: what the sender waited for last; "": nothing yet */
                        CVY_CONTROL_ABANDON =
                            7, /* both    rank: who gave up or is lost; group: what; text: the reason */
                        CVY_CONTROL_GOODBYE = 8, /* both    the end of file that follows is no loss */
                        CVY_CONTROL_MAX_TYPE = 8,
};

enum {
    CVY_CONTROL_HEADER = 28,
    CVY_CONTROL_TEXT = 900, /* bytes of text at most */
    CVY_CONTROL_FRAME = CVY_CONTROL_HEADER + CVY_CONTROL_TEXT,
    CVY_CONTROL_MAX_RANK = 1 << 20,
};

struct cvy_control_message {
    enum cvy_control_type type;
    int32_t rank;
    int32_t group; /* from -1 */
    uint64_t sequence;
    char text[CVY_CONTROL_TEXT + 1]; /* one line of printable UTF-8 */
};

/* Writes a message; its text becomes one line that fits. Returns the bytes used. Local. */
size_t cvy_control_encode(const struct cvy_control_message *message, unsigned char out[CVY_CONTROL_FRAME]);
/* Reads the message at the start of n bytes that anybody may have sent. Returns its bytes; 0: more are needed (never
   for CVY_CONTROL_FRAME bytes); -1: this is no such message. Local. */
ssize_t cvy_control_decode(const unsigned char *bytes, size_t n, struct cvy_control_message *out);

#endif

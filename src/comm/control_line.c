/* Reading and sending on one connection. */
#include "comm/control_line.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

void cvy_line_open(struct cvy_line *line, int fd, enum cvy_line_state state, int64_t now_ns) {
    *line = (struct cvy_line){.fd = fd, .state = state, .rank = -1, .since_ns = now_ns};
}

void cvy_line_close(struct cvy_line *line) {
    if (line->fd >= 0)
        close(line->fd);
    cvy_vec_free(&line->unsent);
    *line = (struct cvy_line){.fd = -1};
}

ssize_t cvy_line_read(struct cvy_line *line) {
    ssize_t n;
    do {
        n = recv(line->fd, line->in + line->n_in, sizeof line->in - line->n_in, 0);
    } while (n < 0 && errno == EINTR);
    if (n > 0)
        line->n_in += (size_t)n;
    return n;
}

int cvy_line_next(struct cvy_line *line, struct cvy_control_message *out) {
    ssize_t n = cvy_control_decode(line->in, line->n_in, out);
    if (n <= 0)
        return (int)n;
    line->n_in -= (size_t)n;
    memmove(line->in, line->in + n, line->n_in);
    return 1;
}

/* Bytes that the network took now. */
static size_t send_some(struct cvy_line *line, const unsigned char *bytes, size_t n) {
    size_t n_sent = 0;
    while (n_sent < n && !line->is_mute) {
        ssize_t k = send(line->fd, bytes + n_sent, n - n_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (k >= 0)
            n_sent += (size_t)k;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            break;
        else if (errno != EINTR)
            line->is_mute = true;
    }
    return n_sent;
}

void cvy_line_flush(struct cvy_line *line) {
    size_t n_sent = send_some(line, line->unsent.data, line->unsent.n);
    line->unsent.n -= n_sent;
    if (n_sent > 0 && line->unsent.n > 0)
        memmove(line->unsent.data, line->unsent.data + n_sent, line->unsent.n);
}

void cvy_line_send(struct cvy_line *line, const struct cvy_control_message *message) {
    unsigned char frame[CVY_CONTROL_FRAME];
    size_t n = cvy_control_encode(message, frame);
    cvy_line_flush(line);
    size_t n_sent = line->unsent.n ? 0 : send_some(line, frame, n);
    if (n_sent == n || line->is_mute)
        return;
    if (cvy_vec_grow(&line->unsent, n - n_sent) != CVY_OK) {
        line->is_mute = true; /* half a message may be out: nothing can follow it */
        return;
    }
    memcpy(line->unsent.data + line->unsent.n, frame + n_sent, n - n_sent);
    line->unsent.n += n - n_sent;
}

bool cvy_line_is_drained(const struct cvy_line *line) {
    if (line->fd < 0 || line->is_mute)
        return true;
    int n_unacknowledged = 0;
    if (line->unsent.n > 0)
        return false;
    return ioctl(line->fd, SIOCOUTQ, &n_unacknowledged) != 0 || n_unacknowledged == 0;
}

/* How the others find rank 0: one place after the other, round after round, until one welcomes them. A place may be of
   another machine that happens to have the same address, so that only a welcome counts. */
#include "comm/control_inner.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

static const int64_t round_ns = 50000000; /* between two rounds */

static bool wait_for(int fd, short events, int64_t until_ns) {
    int64_t left = until_ns - cvy_now_ns();
    struct pollfd one = {.fd = fd, .events = events};
    return left > 0 && poll(&one, 1, (int)(left / 1000000) + 1) > 0;
}

/* Is somebody at the place? Writes why not. */
static bool reach(int fd, int64_t until_ns, char *why, size_t n) {
    int error = 0;
    socklen_t n_error = sizeof error;
    if (!wait_for(fd, POLLOUT, until_ns))
        error = ETIMEDOUT;
    else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n_error) != 0)
        error = errno;
    snprintf(why, n, "%s", strerror(error));
    return error == 0;
}

/* Says hello and hears the answer; is_welcome false without error: try elsewhere. */
static cvy_status introduce(struct cvy_control *control, struct cvy_line *line, int64_t until_ns, char *why,
                            size_t n, bool *is_welcome) {
    struct cvy_control_message message = {
        .type = CVY_CONTROL_HELLO, .rank = control->rank, .group = control->size};
    memcpy(message.text, control->token, sizeof control->token);
    cvy_line_send(line, &message);
    snprintf(why, n, "no answer");
    int found = 0;
    while (found == 0 && wait_for(line->fd, POLLIN, until_ns)) {
        ssize_t n_read = cvy_line_read(line);
        if (n_read == 0 || (n_read < 0 && errno != EAGAIN)) {
            snprintf(why, n, "somebody else is there");
            return CVY_OK;
        }
        found = cvy_line_next(line, &message);
    }
    if (found < 0)
        snprintf(why, n, "somebody else is there");
    if (found <= 0)
        return CVY_OK;
    if (message.type == CVY_CONTROL_REFUSE)
        return CVY_FAIL(CVY_ERR_USAGE, "%s", message.text);
    if (message.type == CVY_CONTROL_ABANDON)
        return CVY_FAIL(CVY_ERR_LOST, "%s", message.text);
    *is_welcome = message.type == CVY_CONTROL_WELCOME;
    return CVY_OK;
}

static cvy_status try_place(struct cvy_control *control, const struct sockaddr_storage *at, int64_t until_ns,
                            char *why, size_t n) {
    struct cvy_line *line = &control->lines[0];
    int fd = cvy_control_begin_connect(at);
    if (fd < 0) {
        snprintf(why, n, "%s", strerror(errno));
        return CVY_OK;
    }
    bool is_welcome = false;
    cvy_status status = CVY_OK;
    cvy_line_open(line, fd, CVY_LINE_STRANGER, cvy_now_ns());
    if (reach(fd, until_ns, why, n))
        status = introduce(control, line, until_ns, why, n, &is_welcome);
    if (is_welcome) {
        line->state = CVY_LINE_WELCOMED;
        line->rank = 0;
    } else {
        cvy_line_close(line);
    }
    return status;
}

cvy_status cvy_control_dial(struct cvy_control *control, const struct cvy_control_places *places) {
    int64_t until = cvy_now_ns() + (int64_t)(control->timeout_s * 1e9);
    double slice_s = control->timeout_s / (2 * places->n);
    int64_t slice_ns = (int64_t)((slice_s > 0.2 ? slice_s : 0.2) * 1e9);
    char why[128] = "no time";
    for (;;) {
        for (int i = 0; i < places->n; i++) {
            int64_t now = cvy_now_ns();
            if (now >= until)
                return CVY_FAIL(CVY_ERR_LOST,
                                "rank %d cannot reach rank 0 within %.1f s at any of %s (%s); is there a "
                                "firewall between the nodes?",
                                control->rank, control->timeout_s, places->text, why);
            int64_t by = now + slice_ns < until ? now + slice_ns : until;
            CVY_TRY(try_place(control, &places->at[i], by, why, sizeof why));
            if (control->lines[0].state == CVY_LINE_WELCOMED)
                return CVY_OK;
        }
        poll(NULL, 0, (int)(round_ns / 1000000));
    }
}

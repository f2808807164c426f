/* Sockets and addresses of the control connection. One socket serves IPv6 and IPv4 where the system has both. */
#include "comm/control_address.h"

#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { SOCKET_FLAGS = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC };

/* ---- listening --------------------------------------------------------------------------------------- */

static cvy_status bind_any(int *fd, int *family) {
    const struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    const struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    const int no = 0;
    *family = AF_INET6;
    *fd = socket(AF_INET6, SOCKET_FLAGS, 0);
    if (*fd >= 0 && setsockopt(*fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) == 0 &&
        bind(*fd, (const struct sockaddr *)&any6, sizeof any6) == 0)
        return CVY_OK;
    if (*fd >= 0)
        close(*fd);
    *family = AF_INET;
    *fd = socket(AF_INET, SOCKET_FLAGS, 0);
    if (*fd >= 0 && bind(*fd, (const struct sockaddr *)&any4, sizeof any4) == 0)
        return CVY_OK;
    int error = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return CVY_FAIL(CVY_ERR_IO, "the control connection has no TCP port to listen on: %s", strerror(error));
}

/* Another machine's name for a link-local IPv6 address would have another interface in it. */
static bool is_usable(const struct ifaddrs *entry, int family, bool is_loopback) {
    if (!entry->ifa_addr || entry->ifa_addr->sa_family != family || !(entry->ifa_flags & IFF_UP))
        return false;
    if (family == AF_INET6 &&
        IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)entry->ifa_addr)->sin6_addr))
        return false;
    return is_loopback == !!(entry->ifa_flags & IFF_LOOPBACK);
}

static void print_place(const struct sockaddr *at, int port, char *out, size_t n_bytes) {
    char host[INET6_ADDRSTRLEN] = "";
    if (at->sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)at)->sin6_addr, host, sizeof host);
        snprintf(out, n_bytes, " [%s]:%d", host, port);
    } else {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)at)->sin_addr, host, sizeof host);
        snprintf(out, n_bytes, " %s:%d", host, port);
    }
}

static cvy_status print_places(int family, int port, char *text, size_t n_bytes) {
    static const struct {
        int family;
        bool is_loopback;
    } passes[] = {{AF_INET, false}, {AF_INET6, false}, {AF_INET, true}, {AF_INET6, true}};
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return CVY_FAIL(CVY_ERR_IO, "cannot list the network interfaces: %s", strerror(errno));
    int n_places = 0;
    for (int pass = 0; pass < 4; pass++) {
        for (const struct ifaddrs *entry = all; entry; entry = entry->ifa_next) {
            char place[INET6_ADDRSTRLEN + 16];
            if ((passes[pass].family == AF_INET6 && family == AF_INET) ||
                !is_usable(entry, passes[pass].family, passes[pass].is_loopback))
                continue;
            print_place(entry->ifa_addr, port, place, sizeof place);
            if (n_places == CVY_CONTROL_MAX_PLACES || strlen(text) + strlen(place) >= n_bytes)
                continue;
            strcat(text, place);
            n_places++;
        }
    }
    freeifaddrs(all);
    if (n_places == 0)
        return CVY_FAIL(CVY_ERR_IO, "no network interface is up, not even loopback: ip link set lo up");
    return CVY_OK;
}

cvy_status cvy_control_open_listener(char *text, size_t n_bytes, int *fd) {
    unsigned char random[CVY_CONTROL_TOKEN / 2];
    struct sockaddr_storage at;
    socklen_t n_at = sizeof at;
    int family;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return CVY_FAIL(CVY_ERR_IO, "the system gives no random numbers: %s", strerror(errno));
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(text + 2 * i, n_bytes - 2 * i, "%02x", random[i]);
    CVY_TRY(bind_any(fd, &family));
    cvy_status status = CVY_OK;
    if (listen(*fd, SOMAXCONN) != 0 || getsockname(*fd, (struct sockaddr *)&at, &n_at) != 0)
        status = CVY_FAIL(CVY_ERR_IO, "the control connection cannot listen: %s", strerror(errno));
    int port =
        family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port : ((struct sockaddr_in *)&at)->sin_port;
    if (status == CVY_OK)
        status = print_places(family, ntohs((uint16_t)port), text, n_bytes);
    if (status != CVY_OK) {
        close(*fd);
        *fd = -1;
    }
    return status;
}

/* ---- places ------------------------------------------------------------------------------------------ */

/* "10.0.0.1:4242" or "[fd00::1]:4242" */
static bool parse_place(const char *text, size_t n, struct sockaddr_storage *out) {
    char place[INET6_ADDRSTRLEN + 16];
    int64_t port;
    if (n >= sizeof place)
        return false;
    memcpy(place, text, n);
    place[n] = '\0';
    char *colon = strrchr(place, ':');
    if (!colon || colon == place || !cvy_parse_i64(colon + 1, &port) || port < 1 || port > 65535)
        return false;
    *colon = '\0';
    memset(out, 0, sizeof *out);
    if (place[0] != '[') {
        struct sockaddr_in *at = (struct sockaddr_in *)out;
        at->sin_family = AF_INET;
        at->sin_port = htons((uint16_t)port);
        return inet_pton(AF_INET, place, &at->sin_addr) == 1;
    }
    struct sockaddr_in6 *at = (struct sockaddr_in6 *)out;
    if (colon[-1] != ']')
        return false;
    colon[-1] = '\0';
    at->sin6_family = AF_INET6;
    at->sin6_port = htons((uint16_t)port);
    return inet_pton(AF_INET6, place + 1, &at->sin6_addr) == 1;
}

cvy_status cvy_control_parse_places(const char *text, struct cvy_control_places *out) {
    size_t n_token = strcspn(text, " ");
    out->n = 0;
    out->text = text + n_token + (text[n_token] == ' ');
    if (n_token != CVY_CONTROL_TOKEN || !*out->text)
        return CVY_FAIL(CVY_ERR_USAGE, "\"%s\" is no address of a control connection: TOKEN HOST:PORT ...",
                        text);
    memcpy(out->token, text, n_token);
    out->token[n_token] = '\0';
    for (const char *at = out->text; *at;) {
        size_t n = strcspn(at, " ");
        if (out->n == CVY_CONTROL_MAX_PLACES || !parse_place(at, n, &out->at[out->n]))
            return CVY_FAIL(CVY_ERR_USAGE, "\"%s\" is no HOST:PORT of a control connection", at);
        out->n++;
        at += n + (at[n] == ' ');
    }
    return CVY_OK;
}

/* ---- connections ------------------------------------------------------------------------------------- */

/* Messages are small and each is urgent. Failing costs time only. */
static void send_at_once(int fd) {
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

int cvy_control_begin_connect(const struct sockaddr_storage *at) {
    int fd = socket(at->ss_family, SOCKET_FLAGS, 0);
    if (fd < 0)
        return -1;
    send_at_once(fd);
    socklen_t n = at->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (connect(fd, (const struct sockaddr *)at, n) == 0 || errno == EINPROGRESS || errno == EINTR)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int cvy_control_accept(int listener) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        send_at_once(fd);
    return fd;
}

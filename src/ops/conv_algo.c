/* See conv_algo.h. */
#include "ops/conv_algo.h"

#include <stdio.h>
#include <string.h>

static const char *const algo_names[] = {"auto", "direct", "winograd"};
static const char *const pass_names[] = {"forward", "data", "weights"};
enum { N_ALGOS = 3, N_PASSES = 3, N_SIZES = 5, MAX_SIZE = 1 << 24 };

bool cvy_conv_can_winograd(const struct cvy_conv2d_attrs *a) {
    for (int axis = 0; axis < 2; axis++) {
        if (a->kernel[axis] != 3 || a->stride[axis] != 1 || a->dilation[axis] != 1)
            return false;
    }
    return a->groups == 1;
}

/* Which of n names is the text of so many bytes; -1: none. */
static int find_name(const char *const *names, int n, const char *text, size_t n_bytes) {
    for (int i = 0; i < n; i++)
        if (strlen(names[i]) == n_bytes && !memcmp(names[i], text, n_bytes))
            return i;
    return -1;
}

static void sizes_of(const struct cvy_conv_key *key, int64_t sizes[N_SIZES]) {
    const int64_t all[N_SIZES] = {key->batch, key->in_channels, key->out_channels, key->out_height,
                                  key->out_width};
    memcpy(sizes, all, sizeof all);
}

/* Reads "128x64x64x32x32" up to '='; NULL: it is none. */
static const char *read_sizes(const char *at, int64_t sizes[N_SIZES]) {
    for (int i = 0; i < N_SIZES; i++) {
        size_t n = strspn(at, "0123456789");
        sizes[i] = 0;
        for (size_t k = 0; k < n && sizes[i] <= MAX_SIZE; k++)
            sizes[i] = sizes[i] * 10 + (at[k] - '0');
        if (sizes[i] < 1 || sizes[i] > MAX_SIZE || at[n] != (i < N_SIZES - 1 ? 'x' : '='))
            return NULL;
        at += n + 1;
    }
    return at;
}

/* Reads "PASS:SIZES=ALGO" of n bytes. */
static bool read_exception(const char *at, size_t n, int *pass, int64_t sizes[N_SIZES], int *algo) {
    size_t n_pass = strcspn(at, ":");
    if (n_pass >= n || (*pass = find_name(pass_names, N_PASSES, at, n_pass)) < 0)
        return false;
    const char *value = read_sizes(at + n_pass + 1, sizes);
    if (!value || value >= at + n)
        return false;
    *algo = find_name(algo_names, N_ALGOS, value, (size_t)(at + n - value));
    return *algo >= 0;
}

cvy_status cvy_conv_algo_check(const char *text) {
    if (!text)
        return CVY_OK;
    size_t n = strcspn(text, "+");
    if (find_name(algo_names, N_ALGOS, text, n) < 0) {
        char base[32], suggestion[CVY_SUGGESTION];
        snprintf(base, sizeof base, "%.*s", (int)(n < 31 ? n : 31), text);
        return CVY_FAIL(CVY_ERR_USAGE,
                        "convolution algorithm '%s'%s; take auto, direct or winograd (--conv-algo)", base,
                        cvy_suggest(suggestion, base, algo_names, N_ALGOS));
    }
    for (const char *at = text + n; *at; at += n) {
        int64_t sizes[N_SIZES];
        int pass, algo;
        n = strcspn(++at, "+");
        if (!read_exception(at, n, &pass, sizes, &algo))
            return CVY_FAIL(CVY_ERR_USAGE,
                            "convolution algorithm: cannot read '+%.*s', which must be like "
                            "+forward:128x64x64x32x32=direct (--conv-algo)",
                            (int)(n < 80 ? n : 80), at);
    }
    return CVY_OK;
}

enum cvy_conv_algo cvy_conv_algo_find(const char *text, const struct cvy_conv_key *key) {
    int64_t want[N_SIZES], sizes[N_SIZES];
    if (!text)
        return CVY_CONV_AUTO;
    size_t n = strcspn(text, "+");
    int base = find_name(algo_names, N_ALGOS, text, n);
    sizes_of(key, want);
    for (const char *at = text + n; *at; at += n) {
        int pass, algo;
        n = strcspn(++at, "+");
        if (read_exception(at, n, &pass, sizes, &algo) && pass == (int)key->pass &&
            !memcmp(sizes, want, sizeof want))
            return (enum cvy_conv_algo)algo;
    }
    return base < 0 ? CVY_CONV_AUTO : (enum cvy_conv_algo)base;
}

void cvy_conv_key_print(const struct cvy_conv_key *key, struct cvy_text *out) {
    int64_t sizes[N_SIZES];
    sizes_of(key, sizes);
    for (int i = 0; i < N_SIZES; i++)
        cvy_text_printf(out, "%s%s%lld", i ? "x" : pass_names[key->pass], i ? "" : ":", (long long)sizes[i]);
}

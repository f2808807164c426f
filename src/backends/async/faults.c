/* Ordered faults: see faults.h. */
#include "backends/async/faults.h"

#include "base/text.h"
#include "base/thread.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- reading ----------------------------------------------------------------------------------------- */

static bool read_key(struct async_fault *fault, int64_t *device, const char *key, const char *value) {
    if (strcmp(key, "device") == 0)
        return cvy_parse_i64(value, device) && *device >= 0;
    if (strcmp(key, "step") == 0)
        return cvy_parse_i64(value, &fault->step) && fault->step >= 0;
    if (strcmp(key, "n") == 0)
        return cvy_parse_i64(value, &fault->n) && fault->n > 0;
    if (strcmp(key, "op") == 0)
        return *value && snprintf(fault->op, sizeof fault->op, "%s", value) < (int)sizeof fault->op;
    return strcmp(key, "seconds") == 0 && cvy_parse_f64(value, &fault->seconds) && fault->seconds >= 0 &&
           isfinite(fault->seconds);
}

/* Does "device=N,op=NAME" have the key "op"? */
static bool has_key(const char *form, const char *key) {
    const size_t n = strlen(key);
    for (const char *at = form; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, key, n) == 0 && at[n] == '=')
            return true;
    }
    return false;
}

/* "device=2,step=3": every part must be known. */
static bool read_parts(struct async_fault *fault, int64_t *device, const char *form, char *text) {
    char *rest = NULL;
    for (char *part = strtok_r(text, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(part, '=');
        if (!value)
            return false;
        *value = '\0';
        if (!has_key(form, part) || !read_key(fault, device, part, value + 1))
            return false;
    }
    return true;
}

cvy_status async_fault_read(const char *variable, const char *form, int index, struct async_fault *out) {
    struct async_fault fault = {.is_on = true, .step = -1, .seconds = 1e9};
    int64_t device = -1; /* any */
    const char *text = getenv(variable);
    char copy[160];
    *out = (struct async_fault){.is_on = false};
    if (!text || !*text)
        return CVY_OK;
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy ||
        !read_parts(&fault, &device, form, copy))
        return CVY_FAIL(CVY_ERR_USAGE, "%s='%s': write %s, each of them or none", variable, text, form);
    if (device < 0 || device == index)
        *out = fault;
    return CVY_OK;
}

cvy_status async_faults_read(int index, double timeout_s, struct async_faults *out) {
    out->timeout_s = timeout_s;
    CVY_TRY(async_fault_read("CVY_ASYNC_FAIL", "device=N,step=N,op=NAME", index, &out->fail));
    return async_fault_read("CVY_ASYNC_STALL", "device=N,step=N,op=NAME,seconds=X", index, &out->stall);
}

/* ---- meeting them ------------------------------------------------------------------------------------ */

bool async_fault_is_due(struct async_fault *fault, const struct async_what *what) {
    if (!fault->is_on || (fault->step >= 0 && !(what->has_instr && (uint64_t)fault->step == what->step)) ||
        (fault->op[0] && strcmp(fault->op, what->op) != 0))
        return false;
    return fault->n == 0 || ++fault->n_met == fault->n;
}

/* Sleeps in short pieces, as somebody would who asks the device again and again. False: too long. */
static bool stall(double seconds, double timeout_s) {
    const struct timespec piece = {.tv_nsec = 5000000};
    double limit = timeout_s > 0 && timeout_s < seconds ? timeout_s : seconds;
    int64_t start = cvy_now_ns();
    while ((double)(cvy_now_ns() - start) * 1e-9 < limit)
        nanosleep(&piece, NULL);
    return limit == seconds;
}

cvy_status async_faults_meet(struct async_faults *faults, const char *device, const struct async_what *what) {
    bool fails = async_fault_is_due(&faults->fail, what), stalls = async_fault_is_due(&faults->stall, what);
    if (!fails && !stalls)
        return CVY_OK;
    struct cvy_text text = {0};
    cvy_status status = CVY_OK;
    async_what_print(what, &text);
    faults->stall.is_on &= !stalls;
    if (stalls && !stall(faults->stall.seconds, faults->timeout_s))
        status = CVY_FAIL(
            CVY_ERR_LOST,
            "%s: step %llu: %s was not over after %.1f seconds, lost or slower than --timeout allows", device,
            (unsigned long long)what->step, text.data, faults->timeout_s);
    else if (fails)
        status = CVY_FAIL(CVY_ERR_FAILED, "%s: step %llu: %s fails, as CVY_ASYNC_FAIL orders", device,
                          (unsigned long long)what->step, text.data);
    cvy_text_free(&text);
    return status;
}

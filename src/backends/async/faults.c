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

struct order_form {
    struct async_fault fault;
    int64_t device; /* -1: any */
    bool is_stall;
};

static bool read_key(struct order_form *form, const char *key, const char *value) {
    if (strcmp(key, "device") == 0)
        return cvy_parse_i64(value, &form->device) && form->device >= 0;
    if (strcmp(key, "step") == 0)
        return cvy_parse_i64(value, &form->fault.step) && form->fault.step >= 0;
    if (strcmp(key, "op") == 0)
        return *value &&
               snprintf(form->fault.op, sizeof form->fault.op, "%s", value) < (int)sizeof form->fault.op;
    return form->is_stall && strcmp(key, "seconds") == 0 && cvy_parse_f64(value, &form->fault.seconds) &&
           form->fault.seconds >= 0 && isfinite(form->fault.seconds);
}

/* "device=2,step=3": every part must be known. */
static bool read_form(struct order_form *form, char *text) {
    char *rest = NULL;
    for (char *part = strtok_r(text, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(part, '=');
        if (!value)
            return false;
        *value = '\0';
        if (!read_key(form, part, value + 1))
            return false;
    }
    return true;
}

static cvy_status read_fault(const char *variable, bool is_stall, int index, struct async_fault *out) {
    struct order_form form = {
        .fault = {.is_on = true, .step = -1, .seconds = 1e9}, .device = -1, .is_stall = is_stall};
    const char *text = getenv(variable);
    char copy[160];
    if (!text || !*text)
        return CVY_OK;
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy || !read_form(&form, copy))
        return CVY_FAIL(CVY_ERR_USAGE, "%s='%s': write device=N,step=N,op=NAME%s, each of them or none",
                        variable, text, is_stall ? ",seconds=X" : "");
    if (form.device < 0 || form.device == index)
        *out = form.fault;
    return CVY_OK;
}

cvy_status async_faults_read(int index, double timeout_s, struct async_faults *out) {
    *out = (struct async_faults){.timeout_s = timeout_s};
    CVY_TRY(read_fault("CVY_ASYNC_FAIL", false, index, &out->fail));
    return read_fault("CVY_ASYNC_STALL", true, index, &out->stall);
}

/* ---- meeting them ------------------------------------------------------------------------------------ */

static bool is_meant(const struct async_fault *fault, const struct async_what *what) {
    return fault->is_on && (fault->step < 0 || (what->has_instr && (uint64_t)fault->step == what->step)) &&
           (!fault->op[0] || strcmp(fault->op, what->op) == 0);
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
    bool fails = is_meant(&faults->fail, what), stalls = is_meant(&faults->stall, what);
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

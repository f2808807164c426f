/* See schedule.h. With t in epochs since the warm-up's end and L epochs from there to the end:
     constant   lr
     step       lr * gamma^floor(t / step_size)
     cosine     min + (lr - min) * (1 + cos(pi t / L)) / 2
     onecycle   lr/25 up to lr over the first 30 %, then down to lr/250000, both as half a cosine */
#include "engine/schedule.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

static double rate_constant(const struct cvy_lr_schedule *s, double t, double length) {
    (void)t, (void)length;
    return s->lr;
}

static double rate_step(const struct cvy_lr_schedule *s, double t, double length) {
    (void)length;
    /* t is a multiple of 1/updates_per_epoch: without the small addition rounding could delay a step */
    return s->lr * pow(s->gamma, floor(t / s->step_size + 1e-9));
}

static double rate_cosine(const struct cvy_lr_schedule *s, double t, double length) {
    if (length <= 0)
        return s->lr;
    return s->min_lr + (s->lr - s->min_lr) * (1 + cos(pi * t / length)) / 2;
}

static double half_cosine(double from, double to, double part) {
    return to + (from - to) / 2 * (1 + cos(pi * part));
}

/* torch.optim.lr_scheduler.OneCycleLR with its defaults: pct_start 0.3, div_factor 25, final_div_factor 1e4,
   two phases, which torch counts in updates: the peak is update 0.3 n - 1, the end update n - 1. */
static double rate_onecycle(const struct cvy_lr_schedule *s, double t, double length) {
    double n = length * (double)s->updates_per_epoch, u = t * (double)s->updates_per_epoch;
    double first = s->lr / 25, last = first / 1e4;
    double peak = 0.3 * n - 1, end = n - 1;
    if (peak > 0 && u <= peak)
        return half_cosine(first, s->lr, u / peak);
    return end > peak ? half_cosine(s->lr, last, (u - peak) / (end - peak)) : s->lr;
}

static const struct cvy_lr_schedule_kind kinds[] = {
    {"step", "steplr", "lr * gamma^floor(epoch / step size)", false, false, rate_step},
    {"cosine", "cosineannealinglr", "half a cosine from lr down to the minimum at the end", false, true,
     rate_cosine},
    {"onecycle", "onecyclelr", "lr/25 up to lr in the first 30 %, then down to lr/250000", true, true,
     rate_onecycle},
    {"constant", "constantlr", "lr, always", false, false, rate_constant},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

const struct cvy_lr_schedule_kind *cvy_lr_schedule_table(size_t *n) {
    *n = N_KINDS;
    return kinds;
}

const struct cvy_lr_schedule_kind *cvy_lr_schedule_find(const char *name) {
    for (size_t i = 0; i < N_KINDS; i++)
        if (!strcmp(name, kinds[i].name) || !strcmp(name, kinds[i].torch_name))
            return &kinds[i];
    return NULL;
}

static cvy_status check_number(const char *flag, double value, double min) {
    if (!isfinite(value) || value < min)
        return CVY_FAIL(CVY_ERR_USAGE, "--%s %g: must be a finite number, at least %g", flag, value, min);
    return CVY_OK;
}

static cvy_status check_kind(const struct cvy_lr_schedule *s) {
    const struct cvy_lr_schedule_kind *kind = cvy_lr_schedule_find(s->kind);
    if (!kind)
        return CVY_FAIL(CVY_ERR_USAGE, "--lr-scheduler %s: no such schedule; see `convoy train --help`",
                        s->kind);
    if (kind->has_own_warmup && s->warmup_epochs > 0)
        return CVY_FAIL(CVY_ERR_USAGE, "--lr-warmup-epochs %g: %s warms up by itself; leave the flag out",
                        s->warmup_epochs, kind->name);
    if (s->warmup_epochs > (double)s->n_epochs)
        return CVY_FAIL(CVY_ERR_USAGE, "--lr-warmup-epochs %g: more than the %lld of --epochs",
                        s->warmup_epochs, (long long)s->n_epochs);
    if (strcmp(s->warmup_method, "linear") != 0 && strcmp(s->warmup_method, "constant") != 0)
        return CVY_FAIL(CVY_ERR_USAGE, "--lr-warmup-method %s: must be linear or constant", s->warmup_method);
    return CVY_OK;
}

cvy_status cvy_lr_check(const struct cvy_lr_schedule *s) {
    CVY_TRY(check_kind(s));
    CVY_TRY(check_number("lr", s->lr, 0));
    CVY_TRY(check_number("lr-min", s->min_lr, 0));
    CVY_TRY(check_number("lr-gamma", s->gamma, 0));
    CVY_TRY(check_number("lr-warmup-epochs", s->warmup_epochs, 0));
    CVY_TRY(check_number("lr-warmup-decay", s->warmup_decay, 0));
    CVY_TRY(check_number("lr-step-size", s->step_size, 0));
    if (s->step_size == 0)
        return CVY_FAIL(CVY_ERR_USAGE, "--lr-step-size 0: must be more than 0 epochs");
    return CVY_OK;
}

double cvy_lr_at(const struct cvy_lr_schedule *s, int64_t update) {
    double epoch = (double)update / (double)s->updates_per_epoch;
    if (epoch < s->warmup_epochs) {
        if (!strcmp(s->warmup_method, "constant"))
            return s->lr * s->warmup_decay;
        return s->lr * (s->warmup_decay + (1 - s->warmup_decay) * epoch / s->warmup_epochs);
    }
    const struct cvy_lr_schedule_kind *kind = cvy_lr_schedule_find(s->kind);
    return kind->rate(s, epoch - s->warmup_epochs, (double)s->n_epochs - s->warmup_epochs);
}

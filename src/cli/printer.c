/* See printer.h. */
#include "cli/printer.h"

#include "base/thread.h"

#include <stdio.h>

enum { BAR = 24, REDRAW_NS = 100000000 };

#define LL(x) ((long long)(x))

void printer_devices(const cvy_plan *plan) {
    struct cvy_plan_facts f;
    cvy_plan_facts(plan, &f);
    printf("using %d device%s: %s (%s, S=%lld, T=%d)\n", f.n_devices, f.n_devices == 1 ? "" : "s", f.devices,
           f.strategy, LL(f.shards), f.threads);
    fflush(stdout);
}

static void draw_bar(const struct cvy_step_report *r, const struct cvy_progress *p) {
    char bar[BAR + 1], left[16];
    int filled = (int)((r->step + 1) * BAR / r->n_steps);
    for (int i = 0; i < BAR; i++)
        bar[i] = i < filled ? '=' : i == filled ? '>' : ' ';
    bar[BAR] = 0;
    cvy_progress_clock(cvy_progress_left_s(p), left);
    printf("\r\033[Kepoch %lld/%lld [%s] %lld/%lld  loss %.4f  lr %.3g  %.0f images/s  %s left",
           LL(r->epoch + 1), LL(r->n_epochs), bar, LL(r->step + 1), LL(r->n_steps), r->metrics.loss, r->lr,
           cvy_progress_rate(p), left);
    fflush(stdout);
}

void printer_step(void *context, const struct cvy_step_report *r, const struct cvy_progress *p) {
    struct printer *printer = context;
    if (printer->is_terminal) {
        int64_t now = cvy_now_ns();
        if (now >= printer->next_draw_ns) {
            draw_bar(r, p);
            printer->next_draw_ns = now + REDRAW_NS;
        }
    } else if ((r->step + 1) % printer->print_freq == 0) {
        printf("epoch %lld/%lld, step %lld/%lld: loss %.4f, lr %.3g, %.0f images/s\n", LL(r->epoch + 1),
               LL(r->n_epochs), LL(r->step + 1), LL(r->n_steps), r->metrics.loss, r->lr, r->images_per_s);
        fflush(stdout);
    }
}

void printer_epoch(void *context, const struct cvy_epoch_report *r, const struct cvy_progress *p) {
    struct printer *printer = context;
    char left[16];
    cvy_progress_clock(cvy_progress_left_s(p), left);
    printf("%sepoch %lld/%lld: training loss %.4f, top-1 %.2f %%; validation loss %.4f, top-1 %.2f %% (%lld "
           "of %lld), "
           "top-5 %.2f %%%s; %.0f images/s, %s left\n",
           printer->is_terminal ? "\r\033[K" : "", LL(r->epoch + 1), LL(r->n_epochs),
           cvy_tally_loss(&r->train), cvy_tally_top1(&r->train), cvy_tally_loss(&r->val),
           cvy_tally_top1(&r->val), LL(r->val.top1), LL(r->val.n), cvy_tally_top5(&r->val),
           r->is_best ? ", the best so far" : "", r->train_s > 0 ? (double)r->train.n / r->train_s : 0.0,
           left);
    fflush(stdout);
}

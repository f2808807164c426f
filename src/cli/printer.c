/* See printer.h. */
#include "cli/printer.h"

#include "base/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR = 24, MIN_BAR = 4, WIDTH = 80, REDRAW_NS = 100000000 };

#define LL(x) ((long long)(x))

void printer_devices(const cvy_plan *plan) {
    struct cvy_plan_facts f;
    cvy_plan_facts(plan, &f);
    printf("using %d device%s: %s", f.n_devices, f.n_devices == 1 ? "" : "s", f.devices);
    if (f.n_processes > 1)
        printf(" in each of %d processes", f.n_processes);
    printf(" (%s, S=%lld, T=%d%s)\n", f.strategy, LL(f.shards), f.threads,
           f.is_fast_reduce ? ", --fast-reduce: the weights depend on the number of devices" : "");
    fflush(stdout);
}

bool printer_is_terminal(int fd) {
    const char *term = getenv("TERM");
    return isatty(fd) && !(term && !strcmp(term, "dumb"));
}

static int terminal_width(void) {
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : WIDTH;
}

void printer_bar(const struct cvy_step_report *r, const struct cvy_progress *p, int width,
                 char line[PRINTER_LINE]) {
    char head[64], tail[128], bar[BAR + 3] = "", left[16];
    cvy_progress_clock(cvy_progress_left_s(p), left);
    int n = snprintf(head, sizeof head, "epoch %lld/%lld ", LL(r->epoch + 1), LL(r->n_epochs));
    n += snprintf(tail, sizeof tail, "%lld/%lld  loss %.4f  lr %.3g  %.0f images/s  %s left", LL(r->step + 1),
                  LL(r->n_steps), r->metrics.loss, r->lr, cvy_progress_rate(p), left);
    int room = width - 1 - n - 3; /* brackets and a blank */
    int length = room < BAR ? room : BAR;
    if (length >= MIN_BAR) {
        int filled = (int)((r->step + 1) * length / r->n_steps);
        bar[0] = '[';
        for (int i = 0; i < length; i++)
            bar[i + 1] = i < filled ? '=' : i == filled ? '>' : ' ';
        bar[length + 1] = ']';
    }
    snprintf(line, PRINTER_LINE, "%s%s%s%s", head, bar, *bar ? " " : "", tail);
    if (width > 0 && width <= (int)strlen(line))
        line[width - 1] = 0;
}

void printer_step(struct printer *printer, const struct cvy_step_report *r, const struct cvy_progress *p) {
    if (printer->is_terminal) {
        int64_t now = cvy_now_ns();
        if (now >= printer->next_draw_ns) {
            char line[PRINTER_LINE];
            printer_bar(r, p, terminal_width(), line);
            printf("\r\033[K%s", line);
            fflush(stdout);
            printer->next_draw_ns = now + REDRAW_NS;
        }
    } else if ((r->step + 1) % printer->print_freq == 0) {
        printf("epoch %lld/%lld, step %lld/%lld: loss %.4f, lr %.3g, %.0f images/s\n", LL(r->epoch + 1),
               LL(r->n_epochs), LL(r->step + 1), LL(r->n_steps), r->metrics.loss, r->lr, r->images_per_s);
        fflush(stdout);
    }
}

void printer_epoch(const struct printer *printer, const struct cvy_epoch_report *r,
                   const struct cvy_progress *p) {
    char left[16], average[64] = "";
    if (r->ema.n > 0)
        snprintf(average, sizeof average, "; averaged weights: loss %.4f, top-1 %.2f %%",
                 cvy_tally_loss(&r->ema), cvy_tally_top1(&r->ema));
    cvy_progress_clock(cvy_progress_left_s(p), left);
    printf("%sepoch %lld/%lld: training loss %.4f, top-1 %.2f %%; validation loss %.4f, top-1 %.2f %% (%lld "
           "of %lld), "
           "top-5 %.2f %%%s%s; %.0f images/s, %s left\n",
           printer->is_terminal ? "\r\033[K" : "", LL(r->epoch + 1), LL(r->n_epochs),
           cvy_tally_loss(&r->train), cvy_tally_top1(&r->train), cvy_tally_loss(&r->val),
           cvy_tally_top1(&r->val), LL(r->val.top1), LL(r->val.n), cvy_tally_top5(&r->val),
           r->is_best ? ", the best so far" : "", average,
           r->train_s > 0 ? (double)r->train.n / r->train_s : 0.0, left);
    fflush(stdout);
}

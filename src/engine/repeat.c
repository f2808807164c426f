/* repeat: stretches of instructions that enqueue the same calls each time. Between loads, talk with other devices and
   what the host reads, a step only enqueues; which calls, with which addresses, follows from little. This is put into a
   key, by which the device knows the stretch when it comes again. */
#include "base/thread.h"
#include "engine/step.h"

#include <string.h>
#include <xxhash.h>

/* Does it only enqueue, and always the same for the same key? */
static bool is_steady(const struct cvy_step *s, const struct cvy_instr *i) {
    switch (i->kind) {
    case CVY_I_RUN:
    case CVY_I_ADD:
    case CVY_I_ACCUMULATE:
        return true;
    case CVY_I_UPDATE:
        return !cvy_update_is_skipped(s);
    case CVY_I_REFRESH:
        return i->part == 0; /* evaluation's copies are made when weights have changed, and else not */
    default:
        return false;
    }
}

/* Events are for what lies outside: a stretch may begin with a wait and end with a record. Of additions
   alone there is nothing to gain. */
size_t cvy_repeat_length(const struct cvy_step *s, size_t n_left) {
    const struct cvy_streams *streams = s->backend->streams;
    bool is_worth_it = false;
    size_t n = 0;
    if (!streams || !streams->repeat || s->w->plan->options.no_graphs)
        return 0;
    while (n < n_left && is_steady(s, &s->i[n])) {
        const struct cvy_instr *i = &s->i[n];
        if (n > 0 && (i->wait_events || i->stream != s->i->stream))
            break;
        is_worth_it |= i->kind != CVY_I_ADD && i->kind != CVY_I_ACCUMULATE;
        n++;
        if (i->record_event >= 0)
            break;
    }
    return is_worth_it ? n : 0;
}

struct identity { /* of an instruction's calls: without padding, as it is hashed */
    int64_t n_images;
    int32_t kind, phase, part, slot, sum, from, bucket, flags;
};

static uint64_t key_of(const struct cvy_step *stretch, size_t n) {
    const struct cvy_work *work = stretch->work;
    const bool is_first = work->first == 0, is_last = work->first + work->n == work->n_update;
    uint64_t key = 0;
    for (size_t k = 0; k < n; k++) {
        const struct cvy_instr *i = &stretch->i[k];
        struct cvy_step s = *stretch;
        s.i = i;
        const struct identity it = {.n_images = i->kind == CVY_I_RUN ? cvy_step_images(&s) : 0,
                                    .kind = (int32_t)i->kind,
                                    .phase = (int32_t)i->phase,
                                    .part = i->part,
                                    .slot = i->slot,
                                    .sum = i->sum,
                                    .from = i->from,
                                    .bucket = i->bucket,
                                    .flags = work->is_training | is_first << 1 | is_last << 2};
        key = XXH3_64bits_withSeed(&it, sizeof it, key);
    }
    return key;
}

struct stretch {
    struct cvy_step step;
    size_t n;
    cvy_status (*enqueue)(const struct cvy_step *s);
};

static cvy_status enqueue_all(const void *argument) {
    const struct stretch *stretch = argument;
    struct cvy_step step = stretch->step;
    for (size_t k = 0; k < stretch->n; k++) {
        step.i = &stretch->step.i[k];
        CVY_TRY(stretch->enqueue(&step));
    }
    return CVY_OK;
}

cvy_status cvy_repeat(const struct cvy_step *s, size_t n, cvy_status (*enqueue)(const struct cvy_step *s)) {
    const struct stretch stretch = {*s, n, enqueue};
    const size_t n_events = s->w->timeline.n;
    const int64_t start = s->w->timeline.ring ? cvy_now_ns() : 0;
    CVY_TRY(s->backend->streams->repeat(s->w->device, key_of(s, n), enqueue_all, &stretch));
    if (s->w->timeline.ring && s->w->timeline.n == n_events) { /* no operator was told one by one */
        const struct cvy_event event = {"graph",      NULL,  s->i->phase, s->i->shard,
                                        s->i->bucket, start, cvy_now_ns()};
        cvy_timeline_add(&s->w->timeline, &event);
    }
    return CVY_OK;
}

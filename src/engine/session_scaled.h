/* For tests of --amp fp16: trainings whose loss is scaled so much at first that updates are skipped. */
#ifndef CVY_ENGINE_SESSION_SCALED_H
#define CVY_ENGINE_SESSION_SCALED_H

#include "engine/session_matrix.h"

enum { N_SCALED = 24 };
static const double TOO_LARGE = 0x1p28;

/* Updates of one or two batches from a scale with which no gradient is finite; the hash of the weights. */
static inline uint64_t train_scaled(cvy_plan_options options, bool is_split, struct cvy_loss_scale *scale) {
    options.amp = "fp16";
    struct run run = open_run(&options);
    run.session->scale.scale = TOO_LARGE;
    for (int i = 0; i < N_SCALED; i++) {
        struct data data;
        draw(&data, (uint64_t)i);
        bool is_pair = options.accumulate > 1 && i % 2 == 0;
        if (is_pair)
            bring_batch(run.session, batch_of(&data, BATCH), BATCH + 6, is_split, false);
        bring_batch(run.session, batch_of(&data, 6), is_pair ? BATCH + 6 : 6, is_split, true);
    }
    *scale = run.session->scale;
    return close_run(&run);
}

/* All setups skip the same updates and end with the same bits. */
static inline void check_scaled(cvy_plan_options (*options)(const struct setup *setup),
                                const struct setup *all, size_t n) {
    struct cvy_loss_scale want, got;
    const uint64_t want_hash = train_scaled(options(&all[0]), false, &want);
    assert_true(want.n_skipped > 5 && want.n_skipped < N_SCALED - 5);
    assert_true(want.scale == TOO_LARGE / (double)((uint64_t)1 << want.n_skipped) && !want.is_skipped);
    for (size_t i = 1; i < n; i++) {
        const uint64_t hash = train_scaled(options(&all[i]), all[i].is_split, &got);
        if (hash != want_hash || got.scale != want.scale || got.n_good != want.n_good ||
            got.n_skipped != want.n_skipped)
            fail_msg("%s %s %s: weights %016llx, %d skipped; wanted %016llx, %d", all[i].devices,
                     all[i].strategy, all[i].is_split ? "split" : "", (unsigned long long)hash,
                     (int)got.n_skipped, (unsigned long long)want_hash, (int)want.n_skipped);
    }
}

#endif

/* Every wait of every program is needed on the stand-in for CUDA too, and its absence is noticed. What
   passes through the host is waited for by the host, which stands for some of the events: a wait that is not missed
   there must be of that kind, so that without it the results are the same in any order. */
#include "cuda/cuda_orders.h"
#include "engine/session_waits.h"

enum { N_TRIES = 4 }; /* orders without a wait that seems to be needless */

struct count {
    int n, n_missed;
};

/* ---- what comes of a run ----------------------------------------------------------------------------------- */

/* The run, and what brings its update or its losses about: their hash. */
static cvy_status run_to_the_end(struct rig *rig, int k, cvy_session *session, uint64_t *hash) {
    const runner run = runs[k].run;
    const int64_t n_update = 2 * rig->batch.n;
    cvy_batch batch = rig->batch;
    float losses[BATCH] = {0};
    CVY_TRY(run(session, &batch));
    if (run == run_accumulate || run == run_split) {
        batch = rig->batch;
        batch.n_update = n_update;
        CVY_TRY(run(session, &batch));
    }
    if (run == run_split)
        CVY_TRY(cvy_update(session));
    if (run == run_evaluate)
        CVY_TRY(cvy_evaluate(session, &batch, losses, NULL, NULL));
    CVY_TRY(cvy_weights_hash(session, hash));
    for (int i = 0; i < BATCH; i++) {
        uint32_t bits;
        memcpy(&bits, &losses[i], sizeof bits);
        *hash = *hash * 31 + bits;
    }
    return CVY_OK;
}

static uint64_t hash_of(struct rig *rig, int k) {
    cvy_session *session;
    uint64_t hash = 0;
    assert_ok(cvy_session_new(rig->plan, &session));
    assert_ok(run_to_the_end(rig, k, session, &hash));
    cvy_session_free(session);
    return hash;
}

/* ---- taking waits out -------------------------------------------------------------------------------------- */

/* A run without a wait: is its absence noticed? If not, the results must be the same. */
static bool is_missed(struct rig *rig, int k, uint64_t want) {
    cvy_session *session;
    uint64_t hash = 0;
    assert_ok(cvy_session_new(rig->plan, &session));
    cvy_status status = run_to_the_end(rig, k, session, &hash);
    cvy_session_free(session);
    if (status != CVY_OK && !strstr(cvy_error(), "no event orders"))
        fail_msg("%s of %s without a wait: %s", runs[k].name, rig->plan->strategy->name, cvy_error());
    if (status == CVY_OK && hash != want)
        fail_msg("%s of %s: a wait is needed, but not missed", runs[k].name, rig->plan->strategy->name);
    return status != CVY_OK;
}

/* Takes each wait of one device's schedule out, alone. */
static void remove_waits(struct rig *rig, int device, int k, struct count *count) {
    cvy_schedule *schedule =
        (cvy_schedule *)((char *)rig->plan->team.workers[device].program + runs[k].offset);
    const uint64_t want = hash_of(rig, k);
    int n_seen = 0;
    for (size_t i = 0; i < schedule->n; i++) {
        struct cvy_instr *instr = &schedule->data[i];
        const uint64_t waits = instr->wait_events;
        for (uint64_t left = waits; left; left &= left - 1) {
            if (n_seen++ % EVERY_WAIT != 0)
                continue;
            instr->wait_events = waits & ~(left & -left);
            bool missed = false; /* a look at a device that has just come to its end orders, too, by chance */
            for (int try = 0; !missed && try < N_TRIES; try++)
                missed = is_missed(rig, k, want);
            count->n++;
            count->n_missed += missed;
        }
        instr->wait_events = waits;
    }
}

static struct count remove_all_waits(const struct setup *setup, bool sync_bn) {
    struct rig rig;
    struct count count = {0, 0};
    open_rig(&rig, setup, "cuda", 2, sync_bn, 60);
    for (int k = 0; k < N_RUNS; k++) {
        for (int device = 0; device < rig.plan->team.n; device++)
            remove_waits(&rig, device, k, &count);
        assert_ok(run_once(&rig, runs[k].run)); /* and with all of them, nothing is wrong */
    }
    cvy_plan_free(rig.plan);
    print_message("%s %s %s%s: %d waits, %d missed\n", setup->devices, setup->strategy,
                  setup->schedule ? setup->schedule : "", sync_bn ? "sync_bn" : "", count.n, count.n_missed);
    return count;
}

/* ---- tests ------------------------------------------------------------------------------------------------- */

static const struct setup some[] = {
    {"cpu:0-1", "ddp", false, false, NULL, NULL},
    {"cpu:0-2", "ddp", false, false, NULL, NULL},
    {"cpu:0-1", "dp", false, false, NULL, NULL},
    {"cpu:0-1", "mp", false, false, NULL, NULL},
    {"cpu:0-1", "pipeline", false, false, "gpipe", NULL},
    {"cpu:0-2", "pipeline", false, false, "gpipe", NULL},
    {"cpu:0-1", "pipeline", false, false, "1f1b", NULL},
    {"cpu:0-2", "pipeline", false, false, "1f1b", NULL},
    {"cpu:0-3", "hybrid", false, false, "1f1b", "data=2,pipe=2"},
    {"cpu:0-3", "hybrid", false, false, "gpipe", "data=2,pipe=2"},
};
enum { N_SOME = sizeof some / sizeof *some, N_SYNC_BN = 3 }; /* the first ones exchange rows too */

/* From memory to memory nothing but events orders it. */
static void test_from_gpu_to_gpu(void **state) {
    (void)state;
    choose_order(0, true);
    for (int k = 0; k < N_SOME + N_SYNC_BN; k++) {
        struct count count = remove_all_waits(&some[k % N_SOME], k >= N_SOME);
        assert_true(count.n > 0);
        assert_int_equal(count.n_missed, count.n);
    }
    reset_order();
}

/* Devices that neither reach each other nor have a GPU each, which is what NCCL asks for. */
static void test_through_the_host(void **state) {
    (void)state;
    static const struct setup shared[] = {
        {"cuda:0,cuda:1/0-1", "ddp", false, false, NULL, NULL},
        {"cuda:0/0-1,cuda:1", "dp", false, false, NULL, NULL},
        {"cuda:0/0-1,cuda:1", "pipeline", false, false, "1f1b", NULL},
        {"cuda:0/0-1,cuda:1/0-1", "hybrid", false, false, "gpipe", "data=2,pipe=2"},
    };
    choose_order(0, false);
    for (size_t k = 0; k < sizeof shared / sizeof *shared; k++) {
        struct count count = remove_all_waits(&shared[k], false);
        assert_true(count.n_missed > count.n / (EVERY_WAIT > 1 ? 4 : 2)); /* of a few, it may be half */
    }
    reset_order();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_gpu_to_gpu),
        cmocka_unit_test(test_through_the_host),
    };
    return has_plugin() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

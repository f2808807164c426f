/* Replicas that agree are told from replicas that do not: which device, which parameter. */
#include "engine/check_sync.h"
#include "engine/session_matrix.h"

#include <stdlib.h>

static void train_some(const struct run *run) {
    struct data data;
    for (uint64_t i = 0; i < 3; i++) {
        draw(&data, i);
        bring_batch(run->session, batch_of(&data, BATCH), BATCH, false, true);
    }
}

static void replicas_agree(void **state) {
    (void)state;
    for (size_t i = 0; i < N_SETUPS; i++) {
        bool is_small =
            strcmp(setups[i].devices, "cpu:0-1") == 0 || strcmp(setups[i].strategy, "hybrid") == 0;
        if (setups[i].is_split || setups[i].from_text || !is_small)
            continue;
        cvy_plan_options options = options_of(&setups[i], "cpu", 1);
        struct run run = open_run(&options);
        assert_ok(cvy_session_check_sync(run.session)); /* also before the first update */
        train_some(&run);
        assert_ok(cvy_session_check_sync(run.session));
        close_run(&run);
    }
}

struct spoiling {
    int device;
    const char *name;
};

/* One bit of one number of one device. */
static cvy_status spoil_task(struct cvy_worker *worker, void *argument) {
    const struct spoiling *what = argument;
    const struct cvy_stored *value = cvy_store_find(&worker->store, what->name);
    unsigned char *host = NULL;
    if (worker->rank != what->device)
        return CVY_OK;
    assert_non_null(value);
    CVY_TRY(CVY_ALLOC(host, cvy_desc_bytes(&value->desc)));
    cvy_status status = cvy_stored_read(worker, value, host);
    host[0] ^= 1;
    if (status == CVY_OK)
        status = cvy_stored_write(worker, value, host);
    free(host);
    return status;
}

static void spoilt(const char *devices, const char *strategy, const char *mesh, struct spoiling what,
                   const char *said) {
    const struct setup setup = {devices, strategy, false, false, NULL, mesh};
    cvy_plan_options options = options_of(&setup, "cpu", 1);
    struct run run = open_run(&options);
    train_some(&run);
    assert_ok(cvy_team_run(&run.plan->team, spoil_task, &what));
    assert_fails(cvy_session_check_sync(run.session), CVY_ERR_FAILED, said);
    close_run(&run);
}

static void a_bit_is_found(void **state) {
    (void)state;
    spoilt("cpu:0-1", "ddp", NULL, (struct spoiling){1, "fc.weight"},
           "after update 3 replicas differ: device 1 (rank 0) has other values of 'fc.weight' than device 0");
    spoilt("cpu:0-2", "ddp", NULL, (struct spoiling){2, "bn.running_mean"},
           "device 2 (rank 0) has other values of 'bn.");
    spoilt("cpu:0-1", "ddp", NULL, (struct spoiling){0, "a.weight"},
           "device 1 (rank 0) has other values of 'a.weight'");
    spoilt("cpu:0-3", "hybrid", "data=2,pipe=2", (struct spoiling){3, "fc.bias"},
           "'fc.bias' than device 1 (rank 0)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_agree),
        cmocka_unit_test(a_bit_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

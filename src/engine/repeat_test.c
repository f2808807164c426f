/* The key of a stretch: whatever its calls follow from makes another one, and nothing else does. */
#include "cvy_test.h"
#include "engine/step.h"

enum { N_SHARDS = 4, N_IMAGES = 10 }; /* shards of 2, 3, 2 and 3 */

static uint64_t newest;

static cvy_status note_key(struct cvy_device *device, uint64_t key, cvy_status (*run)(const void *argument),
                           const void *argument) {
    (void)device, (void)run, (void)argument;
    newest = key;
    return CVY_OK;
}

static cvy_status enqueue_nothing(const struct cvy_step *s) {
    (void)s;
    return CVY_OK;
}

static uint64_t key_of(const struct cvy_instr *instrs, size_t n, struct cvy_work work) {
    static const struct cvy_streams streams = {.repeat = note_key};
    static const struct cvy_backend backend = {.name = "test", .streams = &streams};
    struct cvy_program program = {.n_shards = N_SHARDS};
    struct cvy_worker worker = {.program = &program};
    const struct cvy_step step = {&worker, &work, &backend, instrs};
    assert_ok(cvy_repeat(&step, n, enqueue_nothing));
    return newest;
}

static struct cvy_instr run_instr(void) {
    struct cvy_instr instr = cvy_instr_make(CVY_I_RUN);
    instr.phase = CVY_PHASE_FORWARD;
    instr.part = instr.shard = instr.slot = instr.sum = instr.bucket = instr.from = 0;
    return instr;
}

/* The first batch of an update of three. */
static struct cvy_work work_of(void) {
    return (struct cvy_work){.n = N_IMAGES, .n_update = 3 * N_IMAGES, .is_training = true};
}

static void test_every_field_of_an_instruction_counts(void **state) {
    (void)state;
    enum { N = 10 };
    struct cvy_instr instrs[N];
    uint64_t keys[N];
    for (int k = 0; k < N; k++)
        instrs[k] = run_instr();
    instrs[1].kind = CVY_I_REFRESH;
    instrs[2].phase = CVY_PHASE_BACKWARD;
    instrs[3].part = 1;
    instrs[4].slot = 1;
    instrs[5].sum = 1;
    instrs[6].from = 1;
    instrs[7].bucket = 1;
    instrs[8].shard = 1; /* of another size */
    instrs[9].kind = CVY_I_ADD;
    for (int k = 0; k < N; k++) {
        keys[k] = key_of(&instrs[k], 1, work_of());
        for (int other = 0; other < k; other++)
            assert_true(keys[k] != keys[other]);
    }
}

static void test_the_place_within_an_update_counts(void **state) {
    (void)state;
    const struct cvy_instr instr = run_instr();
    const uint64_t first = key_of(&instr, 1, work_of());
    struct cvy_work work = work_of();
    work.first = N_IMAGES;
    const uint64_t middle = key_of(&instr, 1, work);
    work.first = 2 * N_IMAGES;
    const uint64_t last = key_of(&instr, 1, work);
    work = work_of();
    work.n_update = N_IMAGES;
    const uint64_t only = key_of(&instr, 1, work);
    work.is_training = false;
    const uint64_t evaluation = key_of(&instr, 1, work);
    const uint64_t keys[] = {first, middle, last, only, evaluation};
    for (int k = 0; k < 5; k++) {
        for (int other = 0; other < k; other++)
            assert_true(keys[k] != keys[other]);
    }
}

static void test_length_and_order_count(void **state) {
    (void)state;
    struct cvy_instr instrs[] = {run_instr(), run_instr(), run_instr()};
    instrs[1].phase = CVY_PHASE_BACKWARD;
    const uint64_t forth = key_of(instrs, 2, work_of()), back = key_of(instrs + 1, 2, work_of());
    assert_true(forth != back);
    assert_true(key_of(instrs, 1, work_of()) != forth && key_of(instrs, 3, work_of()) != forth);
}

/* What is uploaded before, and another shard of the same size, is the same graph's. */
static void test_all_else_is_the_same(void **state) {
    (void)state;
    struct cvy_instr instr = run_instr();
    struct cvy_work work = work_of();
    const uint64_t key = key_of(&instr, 1, work);
    instr.shard = 2;
    work.step = 7;
    work.lr = 0.5;
    work.scale = 8;
    work.n_skipped = 2;
    assert_true(key_of(&instr, 1, work) == key);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_of_an_instruction_counts),
        cmocka_unit_test(test_the_place_within_an_update_counts),
        cmocka_unit_test(test_length_and_order_count),
        cmocka_unit_test(test_all_else_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Programs: text that means what it says and prints back the same, kernels that run it, and broken programs that
   are refused. Layouts come from a fake backend, arithmetic from the reference backend. */
#include "rt/program_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cvy_test.h"

static const char golden[] =
    "program device 1 of 2, stage 0 of 1 of replica 1, 2 shards from 2 of 4\n"
    "memory persist 192, packed 64, sum 128 x 1 (split 2), slot 192 x 2 (split 3), scratch 0, total 128, "
    "rows 256\n"
    "bucket offset 0 floats 16\n"
    "bucket offset 64 floats 16\n"
    "partial device 0 first 0 level 1 sum 0\n"
    "partial device 1 first 2 level 1 sum 0\n"
    "segment F0/2 forward train stage 0 part 0 shard 2 rule 4\n"
    "  images f32[2,1,2,2] slot 0 bytes 32\n"
    "  relu f32[2,1,2,2]@blocked slot 64 bytes 64\n"
    "  pool.y f32[2,1,2,2] slot 128 bytes 32\n"
    "  pool.index i32[2,1,2,2] nowhere private unread\n"
    "  flat f32[2,4] slot 128 bytes 32\n"
    "  port images = images\n"
    "  port logits = flat\n"
    "  relu = relu(images)  ; id 1\n"
    "  pool.y, pool.index = max_pool(relu) stride=1x1  ; id 2, algorithm 3\n"
    "  flat = flatten(pool.y)  ; id 4000000000\n"
    "segment U1 update train part 1 shard 0 rule 4\n"
    "  hyper f32[2] persist 0 bytes 8\n"
    "  w f32[4] persist 64 bytes 16\n"
    "  g f32[4] sum 64 bytes 16\n"
    "  w.momentum f32[4] persist 128 bytes 16\n"
    "  packed f32[4] packed 0 bytes 64\n"
    "  port hyper = hyper\n"
    "  w, - = sgd(hyper, w, g, w.momentum) momentum=0.9 weight_decay=0.0005  ; layer sgd.1, id 5\n"
    "  packed = reorder(w)  ; id 6, refresh\n"
    "schedule train\n"
    "  load shard 2 slot 0\n"
    "  run F0 shard 2 slot 0 sum 0\n"
    "  add sum 0 from 1 bucket 1\n"
    "schedule accumulate\n"
    "  accumulate sum 0 bucket 1\n"
    "schedule update\n"
    "  update bucket 1\n"
    "schedule start\n"
    "  broadcast\n";

/* ---- a backend that knows one layout --------------------------------------------------------------- */

struct cvy_layout {
    const char *name;
};
static const struct cvy_layout blocked = {"blocked"};

static void fake_layout_print(const struct cvy_layout *layout, struct cvy_text *out) {
    cvy_text_printf(out, "%s", layout ? layout->name : "plain");
}
static bool fake_layout_find(struct cvy_device *device, const char *name, const struct cvy_layout **out) {
    (void)device;
    *out = strcmp(name, blocked.name) == 0 ? &blocked : NULL;
    return *out;
}
static const struct cvy_backend fake_backend = {
    .name = "fake", .layout_print = fake_layout_print, .layout_find = fake_layout_find};

static struct cvy_device fake_device(void) {
    return (struct cvy_device){.backend = &fake_backend, .name = "fake:0"};
}

static struct cvy_program *parse(const char *text, struct cvy_device *device) {
    struct cvy_program *p;
    assert_ok(cvy_program_parse(text, device, &p));
    return p;
}

static char *print(const struct cvy_program *p) {
    struct cvy_text text = {0};
    char *out;
    assert_ok(cvy_program_print(p, &fake_backend, &text));
    assert_ok(cvy_text_take(&text, &out));
    return out;
}

static void test_prints_back(void **state) {
    (void)state;
    struct cvy_device device = fake_device();
    struct cvy_program *p = parse(golden, &device);
    char *text = print(p);
    assert_string_equal(text, golden);
    free(text);
    cvy_program_free(p);
    cvy_program_free(NULL);
}

/* ---- what the golden text means, field by field ---------------------------------------------------- */

static void test_tables(void **state) {
    (void)state;
    struct cvy_device device = fake_device();
    struct cvy_program *p = parse(golden, &device);
    assert_int_equal(p->device, 1);
    assert_int_equal(p->n_devices, 2);
    assert_int_equal(p->n_shards, 4);
    assert_int_equal(p->first_shard, 2);
    assert_int_equal(p->n_local_shards, 2);
    assert_int_equal(p->n_sums, 1);
    assert_int_equal(p->n_sums_split, 2);
    assert_int_equal(p->n_slots, 2);
    assert_int_equal(p->n_slots_split, 3);
    assert_int_equal(p->buckets.n, 2);
    assert_int_equal(p->buckets.data[1].offset, 64);
    assert_int_equal(p->buckets.data[1].n_floats, 16);
    assert_int_equal(p->partials.n, 2);
    assert_int_equal(p->partials.data[1].device, 1);
    assert_int_equal(p->partials.data[1].first, 2);
    assert_int_equal(p->partials.data[1].level, 1);
    assert_int_equal(p->train.n, 3);
    assert_int_equal(p->update.n, 1);
    assert_int_equal(p->start.n, 1);
    assert_int_equal(p->forward.n + p->backward.n + p->evaluate.n, 0);
    assert_int_equal(cvy_program_bytes(p), 192 + 64 + 2 * 128 + 3 * 192 + 128 + 256);
    cvy_program_free(p);
}

static void test_segments(void **state) {
    (void)state;
    struct cvy_device device = fake_device();
    struct cvy_program *p = parse(golden, &device);
    const struct cvy_segment *f = &p->segments.data[0], *u = &p->segments.data[1];
    assert_string_equal(f->name, "F0/2");
    assert_true(f->phase == CVY_PHASE_FORWARD && f->is_training && f->stage == 0 && f->part == 0);
    assert_true(f->shard_size == 2 && f->rule_batch == 4);
    assert_true(u->phase == CVY_PHASE_UPDATE && u->stage == -1 && u->part == 1);
    const struct cvy_operand *relu = &f->operands.data[1], *index = &f->operands.data[3];
    assert_ptr_equal(relu->spec.layout, &blocked);
    assert_true(relu->place.space == CVY_SPACE_SLOT && relu->place.offset == 64 && relu->place.n_bytes == 64);
    assert_null(f->operands.data[0].spec.layout);
    assert_true(relu->spec.is_fixed && !relu->spec.is_private && !relu->spec.is_absent);
    assert_true(index->spec.is_absent && index->spec.is_private && index->place.space == CVY_SPACE_NONE);
    assert_string_equal(f->ports.data[1].name, "logits");
    assert_int_equal(f->ports.data[1].operand, 4);
    const struct cvy_prog_op *pool = &f->ops.data[1], *sgd = &u->ops.data[0], *packed = &u->ops.data[1];
    assert_string_equal(pool->name, "pool");
    assert_int_equal(pool->algorithm, 3);
    assert_int_equal(pool->id, 2);
    assert_memory_equal(pool->out, ((int32_t[]){2, 3}), 2 * sizeof(int32_t));
    assert_int_equal(f->ops.data[2].id, 4000000000u);
    assert_string_equal(sgd->name, "sgd.1");
    assert_ptr_equal(sgd->op, cvy_op_find("sgd"));
    assert_memory_equal(sgd->in, ((int32_t[]){0, 1, 2, 3}), 4 * sizeof(int32_t));
    assert_memory_equal(sgd->out, ((int32_t[]){1, -1}), 2 * sizeof(int32_t));
    assert_int_equal(sgd->phase, CVY_PHASE_UPDATE);
    assert_int_equal(packed->phase, CVY_PHASE_REFRESH);
    cvy_program_free(p);
}

static void assert_same_instr(const struct cvy_instr *a, const struct cvy_instr *b) {
    assert_true(a->kind == b->kind && a->phase == b->phase && a->stage == b->stage && a->part == b->part);
    assert_true(a->shard == b->shard && a->slot == b->slot && a->sum == b->sum && a->from == b->from);
    assert_true(a->bucket == b->bucket && a->stream == b->stream && a->wait_events == b->wait_events);
    assert_int_equal(a->record_event, b->record_event);
}

static void test_instructions(void **state) {
    (void)state;
    static const struct {
        const char *text;
        struct cvy_instr
            instr; /* kind, phase, stage, part, shard, slot, sum, from, bucket, stream, wait, record */
    } known[] = {
        {"  load shard 2 slot 0\n", {CVY_I_LOAD, 0, -1, -1, 2, 0, -1, -1, -1, 0, 0, -1}},
        {"  run F0 shard 1 slot 2 sum 3 wait e0 e2 e63 record e7\n",
         {CVY_I_RUN, CVY_PHASE_FORWARD, 0, 0, 1, 2, 3, -1, -1, 0, UINT64_C(1) << 63 | 5, 7}},
        {"  run F3.2 shard 0\n", {CVY_I_RUN, CVY_PHASE_FORWARD, 3, 2, 0, -1, -1, -1, -1, 0, 0, -1}},
        {"  run B12.0 slot 0\n", {CVY_I_RUN, CVY_PHASE_BACKWARD, 12, 0, -1, 0, -1, -1, -1, 0, 0, -1}},
        {"  run U0.4\n", {CVY_I_RUN, CVY_PHASE_UPDATE, 0, 4, -1, -1, -1, -1, -1, 0, 0, -1}},
        {"  run R2147483647.1\n", {CVY_I_RUN, CVY_PHASE_REFRESH, INT32_MAX, 1, -1, -1, -1, -1, -1, 0, 0, -1}},
        {"  send B1.0 shard 3 slot 0 stream 1\n",
         {CVY_I_SEND, CVY_PHASE_BACKWARD, 1, 0, 3, 0, -1, -1, -1, 1, 0, -1}},
        {"  run B0.5 shard 1 slot 1 sum 1 bucket 2\n",
         {CVY_I_RUN, CVY_PHASE_BACKWARD, 0, 5, 1, 1, 1, -1, 2, 0, 0, -1}},
        {"  exchange F0.3 stream 1\n",
         {CVY_I_EXCHANGE, CVY_PHASE_FORWARD, 0, 3, -1, -1, -1, -1, -1, 1, 0, -1}},
        {"  add sum 0 from 1 bucket 2\n", {CVY_I_ADD, 0, -1, -1, -1, -1, 0, 1, 2, 0, 0, -1}},
        {"  reduce bucket 2 record e0 stream 1\n", {CVY_I_REDUCE, 0, -1, -1, -1, -1, -1, -1, 2, 1, 0, 0}},
        {"  wait bucket 2 wait e0\n", {CVY_I_WAIT, 0, -1, -1, -1, -1, -1, -1, 2, 0, 1, -1}},
        {"  accumulate sum 0 bucket 2\n", {CVY_I_ACCUMULATE, 0, -1, -1, -1, -1, 0, -1, 2, 0, 0, -1}},
        {"  check\n", {CVY_I_CHECK, 0, -1, -1, -1, -1, -1, -1, -1, 0, 0, -1}},
        {"  finite\n", {CVY_I_FINITE, 0, -1, -1, -1, -1, -1, -1, -1, 0, 0, -1}},
        {"  clip\n", {CVY_I_CLIP, 0, -1, -1, -1, -1, -1, -1, -1, 0, 0, -1}},
        {"  update bucket 0\n", {CVY_I_UPDATE, 0, -1, -1, -1, -1, -1, -1, 0, 0, 0, -1}},
        {"  result shard 3 slot 0\n", {CVY_I_RESULT, 0, -1, -1, 3, 0, -1, -1, -1, 0, 0, -1}},
        {"  broadcast\n", {CVY_I_BROADCAST, 0, -1, -1, -1, -1, -1, -1, -1, 0, 0, -1}},
        {"  refresh part 1\n", {CVY_I_REFRESH, 0, -1, 1, -1, -1, -1, -1, -1, 0, 0, -1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct cvy_text text = {0};
        struct cvy_scan scan;
        struct cvy_instr parsed;
        cvy_instr_print(&known[i].instr, &text);
        assert_string_equal(text.data, known[i].text);
        assert_ok(cvy_scan_open(&scan, text.data));
        assert_true(cvy_scan_line(&scan));
        assert_ok(cvy_instr_parse(&scan, &parsed));
        assert_ok(cvy_scan_end(&scan));
        assert_same_instr(&parsed, &known[i].instr);
        cvy_scan_close(&scan);
        cvy_text_free(&text);
    }
}

/* ---- running --------------------------------------------------------------------------------------- */

static const char runnable[] =
    "program device 0 of 1, stage 0 of 1 of replica 0, 1 shards from 0 of 1\n"
    "memory persist 64, packed 0, sum 0 x 1 (split 1), slot 256 x 1 (split 1), scratch 0\n"
    "segment F0/2 forward train stage 0 part 0 shard 2 rule 2\n"
    "  x f32[2,2] slot 0 bytes 16\n"
    "  w f32[1,2] persist 0 bytes 8\n"
    "  r f32[2,2] slot 64 bytes 16\n"
    "  y f32[2,1] slot 128 bytes 8\n"
    "  flat f32[2,1] slot 128 bytes 8\n"
    "  r = relu(x)  ; id 1\n"
    "  y = linear(r, w, -)  ; id 2\n"
    "  flat = flatten(y)  ; id 3\n";

static void run(const struct cvy_segment *s, char *persist, char *slot, void *scratch) {
    for (size_t i = 0; i < s->ops.n; i++) {
        const struct cvy_prog_op *op = &s->ops.data[i];
        void *in[4] = {0}, *out[4] = {0};
        for (int k = 0; k < op->n_in + op->n_out; k++) {
            int32_t index = k < op->n_in ? op->in[k] : op->out[k - op->n_in];
            void **at = k < op->n_in ? &in[k] : &out[k - op->n_in];
            const struct cvy_place *place = index < 0 ? NULL : &s->operands.data[index].place;
            if (place)
                *at = (place->space == CVY_SPACE_PERSIST ? persist : slot) + place->offset;
        }
        if (op->kernel)
            assert_ok(op->kernel->impl->run(op->kernel, in, out, scratch));
    }
}

static void test_parsed_program_runs(void **state) {
    (void)state;
    const struct cvy_backend *reference = cvy_backend_find("reference");
    struct cvy_device *device;
    struct cvy_device_spec spec = {.n_threads = 1, .n_local = 1};
    assert_non_null(reference);
    assert_ok(reference->open(&spec, &device));
    assert_ok(reference->enter(device));
    struct cvy_program *p = parse(runnable, device);
    assert_ok(cvy_program_prepare(p, device));
    const struct cvy_segment *s = &p->segments.data[0];
    assert_non_null(s->ops.data[0].kernel);
    assert_null(s->ops.data[2].kernel); /* a view */
    assert_true(p->scratch_bytes >= s->ops.data[1].scratch_bytes && p->scratch_bytes > 0);

    struct cvy_kernel *kept = s->ops.data[0].kernel;
    assert_ok(cvy_program_prepare(p, device));
    assert_ptr_equal(s->ops.data[0].kernel, kept);

    char *arena = aligned_alloc(CVY_ALIGN, 320);
    void *scratch = aligned_alloc(CVY_ALIGN, p->scratch_bytes);
    assert_true(arena && scratch);
    memset(arena, 0xFF, 320); /* NaN */
    memcpy(arena, (float[]){2, 10}, 8);
    memcpy(arena + 64, (float[]){1, -1, -3, 4}, 16);
    run(s, arena, arena + 64, scratch);
    float y[2];
    memcpy(y, arena + 64 + 128, sizeof y);
    assert_true(y[0] == 2 && y[1] == 40); /* relu, then 2 a + 10 b */
    free(arena);
    free(scratch);
    cvy_program_free(p);
    reference->close(device);
}

static void test_no_kernel(void **state) {
    (void)state;
    struct cvy_device device = fake_device();
    struct cvy_program *p = parse(golden, &device);
    assert_fails(cvy_program_prepare(p, &device), CVY_ERR_UNSUPPORTED,
                 "the fake backend has no kernel for operator");
    cvy_program_free(p);
}

/* ---- refusals -------------------------------------------------------------------------------------- */

/* The golden text with its first `from` replaced. */
static const struct {
    const char *from, *to, *message;
} refused[] = {
    {"program", "graph", "line 1: program is expected"},
    {"device 1 of 2", "device 2 of 2", "device 2 of 2 cannot be"},
    {"from 2 of 4", "from 3 of 4", "own 2 shards from 3 of 4"},
    {"x 1 (split 2)", "x 1", "line 2: ( is expected"},
    {"memory", "memery", "line 2: \"memery\" starts no line"},
    {"bucket offset 64", "bucket offset 128", "bucket 1 ends behind its sum"},
    {"first 2 level 1", "first 4 level 1", "partial sum 1 is no node"},
    {"forward train", "forward trian", "line 7: evaluate or train"},
    {"images f32[2,1,2,2]", "images f32[2,1,2", "line 8:"},
    {"@blocked", "@blokked", "line 9: fake:0 knows no layout called \"blokked\""},
    {"slot 64 bytes", "slot 63 bytes", "relu of F0/2 is not aligned"},
    {"slot 64 bytes", "slut 64 bytes", "line 9: nowhere, persist"},
    {"slot 0 bytes 32", "slot 0 bytes 31", "images of F0/2 has 31 bytes, fewer"},
    {"slot 128 bytes 32\n  port", "slot 192 bytes 32\n  port", "flat of F0/2 ends behind its space"},
    {"slot 128 bytes 32\n  port", "slot 64 bytes 18446744073709551615\n  port", "line 12: a whole number"},
    {"slot 128 bytes 32\n  port", "nowhere\n  port", "flat of F0/2 is used but lies nowhere"},
    {"  flat f32", "  relu f32", "line 12: segment F0/2 has two operands called relu"},
    {"port logits = flat", "port logits = flet", "line 14: segment F0/2 has no operand called \"flet\""},
    {"relu = relu", "relu = rellu", "line 15: there is no operator \"rellu\""},
    {"relu = relu(images)", "relu = relu(flat)", "relu in F0/2 has not the shape that relu makes"},
    {"max_pool(relu)", "max_pool(-)", "pool in F0/2 lacks its input \"x\""},
    {"max_pool(relu)", "max_pool(relu, relu)", "max_pool cannot have 2 inputs"},
    {"pool.y, pool.index = ", "pool.y = ", "max_pool does not make 1 outputs"},
    {"stride=1x1", "stride=1x1 kernel=2x2", "pool.y in F0/2 has not the shape"},
    {"flatten(pool.y)", "flatten(pool.index)", "flat in F0/2 reads pool.index, which lies nowhere"},
    {", total 128", ", total 64", "accumulate in schedule accumulate: the total has 64 bytes"},
    {"layer sgd.1, ", "", "line 25: the layer's name cannot be told"},
    {"layer sgd.1, ", "layer s[gd.1, ", "line 25: the name \"s[gd.1,\" has a bracket in it"},
    {"schedule train", "schedule trane", "line 27: there is no schedule \"trane\""},
    {"load shard", "lode shard", "line 28: load, run"},
    {"shard 2 slot 0\n  run", "shard 1 slot 0\n  run", "takes shard 1, which is another device's"},
    {"shard 2 slot 0\n  run", "shard 2 slot 3\n  run", "takes slot 3 of 3"},
    {"shard 2 slot 0\n  run", "slot 0\n  run", "load in schedule train does not say on what"},
    {"run F0 ", "run F1 ", "no segment of phase 0, stage 1"},
    {"run F0 ", "run X0 ", "line 29: \"X0\" names no segment"},
    {"run F0 ", "run F0.x ", "line 29: \"F0.x\" names no segment"},
    {"run F0 ", "run F2147483648 ", "line 29: \"F2147483648\" names no segment"},
    {"run F0 ", "run F ", "line 29: \"F\" names no segment"},
    {"run F0 ", "run F0. ", "line 29: \"F0.\" names no segment"},
    {"run F0 ", "run ", "line 29: \"shard\" names no segment"},
    {"sum 0 from 1", "sum 0 from 2", "add in schedule train takes sum 2 of 2"},
    {"sum 0 from 1", "sum 0", "add in schedule train does not say on what"},
    {"update bucket 1", "update bucket 2", "update in schedule update takes bucket 2 of 2"},
    {"broadcast", "broadcast record x5", "line 36: \"x5\" is no event"},
    {"broadcast", "broadcast record e64", "line 36: \"e64\" is no event"},
    {"broadcast", "broadcast stream 2", "broadcast in schedule start runs in stream 2 of 2"},
    {"broadcast", "broadcast wait e3",
     "broadcast in schedule start waits for event e3, which nothing above it"},
    {"broadcast", "broadcast wait e0 record e0", "start waits for event e0, which nothing above it records"},
    {"bucket 1\nschedule update", "bucket 1 record e4\nschedule update\n  wait bucket 0 wait e4",
     "wait in schedule update waits for event e4"},
};

static void test_refuses(void **state) {
    (void)state;
    struct cvy_device device = fake_device();
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct cvy_program *p = NULL;
        const char *at = strstr(golden, refused[i].from);
        char *text;
        assert_non_null(at);
        assert_true(asprintf(&text, "%.*s%s%s", (int)(at - golden), golden, refused[i].to,
                             at + strlen(refused[i].from)) > 0);
        if (cvy_program_parse(text, &device, &p) == CVY_OK || !strstr(cvy_error(), refused[i].message))
            fail_msg("'%s' for '%s': '%s' without '%s'", refused[i].to, refused[i].from,
                     p ? "taken" : cvy_error(), refused[i].message);
        assert_null(p);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prints_back),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_instructions),
        cmocka_unit_test(test_parsed_program_runs),
        cmocka_unit_test(test_no_kernel),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

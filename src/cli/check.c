/* convoy check: does a backend compute what the operators' reference kernels say, and what does it leave to
   them? */
#include "rt/check.h"
#include "cli/command.h"
#include "ops/conv_algo.h"

#include <math.h>
#include <stdio.h>

/* All cases of one operator in one line. */
struct row {
    const struct cvy_op *op;
    int n, n_failed, n_fallback;
    double worst; /* error / tolerance */
    const char *reason;
};

static void add(struct row *row, const struct cvy_check_result *r) {
    double part = isnan(r->error) ? INFINITY : r->error / r->tolerance;
    row->n++;
    row->n_failed += !r->has_passed;
    row->n_fallback += r->is_fallback;
    row->worst = part > row->worst ? part : row->worst;
    if (!r->has_passed && r->reason[0])
        row->reason = r->reason;
}

static json_t *to_json(const struct row *row) {
    return json_pack("{s:s, s:i, s:i, s:i, s:o, s:s}", "operator", row->op->name, "cases", row->n, "failed",
                     row->n_failed, "fallback", row->n_fallback, "worst_error_of_tolerance",
                     isfinite(row->worst) ? json_real(row->worst) : json_null(), "reason", row->reason);
}

static void print_row(const struct row *row) {
    const char *by = row->n_fallback == 0 ? "native" : row->n_fallback == row->n ? "reference" : "both";
    printf("%-28s %5d %-10s %12.3g  %s%s%s\n", row->op->name, row->n, by, row->worst,
           row->n_failed ? "FAILED" : "ok", row->reason[0] ? ": " : "", row->reason);
}

/* Results of one operator follow one another. */
static cvy_status print_table(const struct cvy_check_table *table, bool as_json) {
    json_t *list = as_json ? json_array() : NULL;
    if (!as_json)
        printf("%-28s %5s %-10s %12s\n", "operator", "cases", "kernel", "error/limit");
    for (size_t i = 0; i < table->results.n;) {
        struct row row = {.op = table->results.data[i].op, .reason = ""};
        for (; i < table->results.n && table->results.data[i].op == row.op; i++)
            add(&row, &table->results.data[i]);
        if (as_json)
            json_array_append_new(list, to_json(&row));
        else
            print_row(&row);
    }
    return as_json ? command_print_json(list) : CVY_OK;
}

static cvy_status check_device(struct cvy_device *device, const struct options *o) {
    struct cvy_check_table table = {.n_failed = 0};
    CVY_TRY(device->backend->enter(device));
    struct cvy_check_what what = {.seed = (uint64_t)o->seed};
    (void)cvy_dtype_parse(o->dtype, &what.narrow); /* the flag's choices are names of types */
    CVY_TRY(cvy_check_run(device, &what, &table));
    size_t n = table.results.n;
    int n_failed = table.n_failed;
    cvy_status status = print_table(&table, o->json);
    cvy_check_free(&table);
    if (status == CVY_OK && n_failed)
        return CVY_FAIL(CVY_ERR_FAILED, "%d of %zu cases failed on backend %s", n_failed, n,
                        device->backend->name);
    return status;
}

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    const struct options *o = values->options;
    CVY_TRY(command_no_rest(values));
    CVY_TRY(cvy_conv_algo_check(o->conv_algo));
    const struct cvy_backend *backend;
    CVY_TRY(cvy_backend_load(o->backend ? o->backend : "cpu", &backend));
    const struct cvy_device_spec spec = {.n_threads = (int)o->threads,
                                         .n_local = 1,
                                         .conv_algo = o->conv_algo,
                                         .is_nondeterministic = o->nondeterministic == 1,
                                         .allow_tf32 = o->tf32 == 1,
                                         .log = log};
    struct cvy_device *device;
    CVY_TRY(backend->open(&spec, &device));
    cvy_status status = check_device(device, o);
    backend->close(device);
    return status;
}

static const struct flag_group *const groups[] = {&group_kernels, &group_dtype,  &group_seed,
                                                  &group_json,    &group_common, NULL};

const struct command command_check = {
    .name = "check",
    .usage = "[--backend NAME] [--threads-per-device T] [--dtype bf16] [--json]",
    .help = "hold every operator of a backend against its reference",
    .groups = groups,
    .run = run,
};

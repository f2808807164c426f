/* convoy doctor: what is good on this machine, what is not, and the command that mends it. The checks are listed in
   doctor.def. */
#include "cli/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CVY_DOCTOR(name) extern const struct doctor_check doctor_check_##name;
#include "cli/doctor.def"
#undef CVY_DOCTOR

static const struct doctor_check *const table[] = {
#define CVY_DOCTOR(name) &doctor_check_##name,
#include "cli/doctor.def"
#undef CVY_DOCTOR
};

static const char *const states[DOCTOR_N_STATES] = {"good", "note", "bad"};

static const struct flag doctor_flags[] = {
    FLAG("output-dir", TEXT, output_dir, "look at the disk of this folder; default: this folder",
         .value_name = "DIR"),
    FLAG("quick", SWITCH, quick, "only look: start nothing and measure nothing", .initial = "false"),
    FLAG("root", TEXT, root,
         "read DIR/proc, DIR/sys and DIR/dev, as of another machine; what needs more is left out",
         .value_name = "DIR"),
};
static const struct flag_group group_doctor = {
    .title = "Doctor", .flags = doctor_flags, .n = sizeof doctor_flags / sizeof *doctor_flags};

static cvy_status look(struct doctor *d) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if ((table[i]->is_live && *d->root) || (table[i]->is_trial && d->options->quick == 1))
            continue;
        d->check = table[i]->name;
        table[i]->run(d);
        CVY_TRY(d->status);
    }
    return CVY_OK;
}

/* ---- the recommendation -------------------------------------------------------------------------------- */

/* GPUs: all of them. Cores: a device for each node of memory, or two, which is as fast as one and shows what a
   strategy does; threads take the rest. One core in four decodes. */
static void recommend(const struct doctor *d, char *out, size_t n_bytes) {
    long long cores = d->n_cores > 0 ? d->n_cores : 1, workers = cores / 4 > 0 ? cores / 4 : 1;
    char last[32] = "";
    if (d->n_gpus > 0) {
        if (d->n_gpus > 1)
            snprintf(last, sizeof last, "-%lld", (long long)d->n_gpus - 1);
        snprintf(out, n_bytes,
                 "convoy train --model resnet18 --data-path DIR --devices cuda:0%s --batch-size %lld -j %lld",
                 last, 64 * (long long)d->n_gpus, cores);
        return;
    }
    long long devices = d->n_nodes > 1 ? d->n_nodes : 2;
    devices = devices < cores ? devices : cores;
    if (devices > 1)
        snprintf(last, sizeof last, "-%lld", devices - 1);
    snprintf(out, n_bytes,
             "convoy train --model resnet18 --data-path DIR --devices cpu:0%s --threads-per-device %lld "
             "--batch-size %lld -j %lld",
             last, cores / devices, 32 * devices, workers);
}

/* ---- output -------------------------------------------------------------------------------------------- */

static void print_text(const struct doctor *d, const char *recommended) {
    for (size_t i = 0; i < d->findings.n; i++) {
        const struct doctor_finding *f = &d->findings.data[i];
        printf("%-5s %-8s %s\n", states[f->state], f->check, f->text);
        if (f->mend)
            printf("               mend: %s\n", f->mend);
    }
    printf("recommended: %s\n", recommended);
}

static cvy_status print_json(const struct doctor *d, const char *recommended) {
    json_t *list = json_array();
    for (size_t i = 0; i < d->findings.n; i++) {
        const struct doctor_finding *f = &d->findings.data[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s?}", "check", f->check, "state",
                                              states[f->state], "text", f->text, "mend", f->mend));
    }
    return command_print_json(
        json_pack("{s:o, s:O?, s:s}", "findings", list, "measured", d->measured, "recommended", recommended));
}

/* The names of the checks that found something bad, each once. */
static cvy_status judge(const struct doctor *d) {
    struct cvy_text names = {0};
    const char *newest = NULL;
    int n = 0;
    for (size_t i = 0; i < d->findings.n; i++) {
        const struct doctor_finding *f = &d->findings.data[i];
        if (f->state != DOCTOR_BAD || f->check == newest)
            continue;
        cvy_text_printf(&names, "%s%s", n++ ? ", " : "", f->check);
        newest = f->check;
    }
    cvy_status status = names.status;
    if (status == CVY_OK && n > 0)
        status = CVY_FAIL(CVY_ERR_UNFIT, "this machine is not fit, see above: %s", names.data);
    cvy_text_free(&names);
    return status;
}

static cvy_status examine(struct flag_values *values, struct doctor *d) {
    char recommended[256];
    CVY_TRY(look(d));
    CVY_TRY(doctor_load(values, d));
    recommend(d, recommended, sizeof recommended);
    if (d->options->json == 1)
        CVY_TRY(print_json(d, recommended));
    else
        print_text(d, recommended);
    return judge(d);
}

/* What would be left out in silence. */
static cvy_status check_quick(const struct flag_values *values) {
    const struct options *o = values->options;
    static const char *const measured[] = {"data", "data-path", "devices"};
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        if (o->quick == 1 && !o->model && flags_given(values, measured[i]))
            return CVY_FAIL(CVY_ERR_USAGE,
                            "--quick measures nothing, and --%s says what to measure: leave one out",
                            measured[i]);
    }
    return CVY_OK;
}

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    const struct options *o = values->options;
    struct doctor d = {.options = o, .log = log, .root = o->root ? o->root : ""};
    CVY_TRY(command_no_rest(values));
    CVY_TRY(check_quick(values));
    cvy_status status = o->model ? doctor_fit(values, &d, log) : examine(values, &d);
    cvy_vec_free(&d.findings);
    cvy_pool_free(&d.pool);
    json_decref(d.measured);
    return status;
}

static void more_help(struct cvy_text *out) {
    cvy_text_printf(
        out,
        "\nEach line is good, a note or bad; \"mend:\" says what helps. Exit code: 5 when something is bad, "
        "else 0.\n");
}

static const struct flag_group *const groups[] = {
    &group_doctor, &group_json,      &group_data,  &group_prepare, &group_augment,
    &group_shape,  &group_freeze,    &group_batch, &group_devices, &group_kernels,
    &group_step,   &group_optimizer, &group_seed,  &group_common,  NULL};

const struct command command_doctor = {
    .name = "doctor",
    .usage = "[--quick] [--devices LIST] [--data SPEC] [--output-dir DIR] [--json]; "
             "--model NAME [flags]: does it fit?",
    .help = "say what is good on this machine, what is not, and what mends it",
    .groups = groups,
    .more_help = more_help,
    .run = run,
};

/* convoy data check: the audit of a data set, as text or JSON. */
#include "base/text.h"
#include "cli/command.h"
#include "cli/reading.h"
#include "data/audit.h"
#include "data/quarantine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LISTED = 10 };

static const char *split_name(cvy_split split) { return split == CVY_SPLIT_TRAIN ? "train" : "val"; }

static void count(const struct cvy_audit *audit, enum cvy_problem kind, int64_t *n, int64_t *n_stops) {
    *n = *n_stops = 0;
    for (size_t i = 0; i < audit->findings.n; i++) {
        const struct cvy_finding *f = &audit->findings.data[i];
        *n += f->kind == kind;
        *n_stops += f->kind == kind && f->stops;
    }
}

/* What would stop a training is listed in full, the rest in part. */
static cvy_status print_kind(const struct cvy_audit *audit, enum cvy_problem kind) {
    struct cvy_text text = {0};
    int64_t n, n_stops, n_odd = 0;
    char *lines;
    count(audit, kind, &n, &n_stops);
    if (n == 0)
        return CVY_OK;
    cvy_text_printf(&text, "%s: %lld (%s)\n", cvy_problem_name(kind), (long long)n,
                    cvy_problem_meaning(kind));
    for (size_t i = 0; i < audit->findings.n; i++) {
        const struct cvy_finding *f = &audit->findings.data[i];
        if (f->kind != kind || (!f->stops && n_odd++ >= MAX_LISTED))
            continue;
        cvy_text_printf(&text, "  %s%s: ", f->stops ? "bad: " : "", split_name(f->split));
        cvy_text_escape(&text, f->text);
        cvy_text_printf(&text, "\n");
    }
    if (n_odd > MAX_LISTED)
        cvy_text_printf(&text, "  and %lld more: --json lists all\n", (long long)(n_odd - MAX_LISTED));
    CVY_TRY(cvy_text_take(&text, &lines));
    fputs(lines, stdout);
    free(lines);
    return CVY_OK;
}

/* File names need not be UTF-8, JSON is. */
static json_t *json_text(const char *from) {
    struct cvy_text text = {0};
    cvy_text_escape(&text, from);
    json_t *json = json_string(text.data ? text.data : "");
    cvy_text_free(&text);
    return json;
}

static json_t *kind_to_json(const struct cvy_audit *audit, enum cvy_problem kind) {
    int64_t n, n_stops;
    json_t *items = json_array();
    count(audit, kind, &n, &n_stops);
    for (size_t i = 0; i < audit->findings.n; i++) {
        const struct cvy_finding *f = &audit->findings.data[i];
        if (f->kind == kind)
            json_array_append_new(items, json_pack("{s:s, s:o*, s:o, s:b}", "split", split_name(f->split),
                                                   "path", f->path ? json_text(f->path) : NULL, "text",
                                                   json_text(f->text), "stops", f->stops));
    }
    return json_pack("{s:s, s:s, s:I, s:I, s:o}", "kind", cvy_problem_name(kind), "meaning",
                     cvy_problem_meaning(kind), "count", (json_int_t)n, "stops", (json_int_t)n_stops, "items",
                     items);
}

static cvy_status print_audit(const struct cvy_audit *audit, const char *spec, bool is_json) {
    if (!is_json) {
        for (int kind = 0; kind < CVY_N_PROBLEMS; kind++)
            CVY_TRY(print_kind(audit, (enum cvy_problem)kind));
        return CVY_OK;
    }
    json_t *kinds = json_array();
    for (int kind = 0; kind < CVY_N_PROBLEMS; kind++)
        json_array_append_new(kinds, kind_to_json(audit, (enum cvy_problem)kind));
    return command_print_json(json_pack("{s:o, s:I, s:I, s:o}", "spec", json_text(spec), "images",
                                        (json_int_t)audit->n, "stops", (json_int_t)audit->n_stops, "problems",
                                        kinds));
}

static cvy_status fail_bad(const struct cvy_audit *audit, const char *spec) {
    return CVY_FAIL(CVY_ERR_DATA,
                    "'%s': %lld of %lld image%s would stop a training: mend or remove what is listed as bad",
                    spec, (long long)audit->n_stops, (long long)audit->n, audit->n == 1 ? "" : "s");
}

/* The folder of --fix move:DIR; NULL: nothing is to be moved. */
static cvy_status find_target(const struct options *options, const char **out) {
    static const char verb[] = "move:";
    *out = NULL;
    if (!options->fix)
        return CVY_OK;
    if (strncmp(options->fix, verb, sizeof verb - 1) != 0 || !options->fix[sizeof verb - 1])
        return CVY_FAIL(CVY_ERR_USAGE, "--fix %s: say --fix move:DIR", options->fix);
    *out = options->fix + sizeof verb - 1;
    return CVY_OK;
}

static cvy_status check_spec(const char *spec, const struct options *options, const cvy_log_sink *log) {
    cvy_dataset *train = NULL, *val = NULL;
    struct cvy_error no_val = {.code = CVY_OK};
    int64_t n_moved = 0;
    struct reading reading = {.done = "checked"};
    struct cvy_audit audit = {.progress = reading_progress(&reading)};
    const char *target;
    cvy_status status;
    CVY_TRY_OUT(find_target(options, &target));
    CVY_TRY_OUT(cvy_dataset_open(spec, CVY_SPLIT_TRAIN, log, &train));
    /* without a validation set no training begins; what there is can be looked at all the same */
    cvy_error_save(&no_val, cvy_dataset_open(spec, CVY_SPLIT_VAL, log, &val));
    if (target)
        CVY_TRY_OUT(cvy_quarantine_check(train, target));
    CVY_TRY_OUT(cvy_audit_run(train, val, (int)options->workers, &audit));
    CVY_TRY_OUT(print_audit(&audit, spec, options->json == 1));
    if (target)
        CVY_TRY_OUT(cvy_quarantine_move(&audit, target, &n_moved));
    if (no_val.code != CVY_OK)
        status = cvy_error_restore(&no_val);
    else if (n_moved < audit.n_stops)
        status = fail_bad(&audit, spec);
    else if (options->json != 1 && n_moved)
        printf("moved: %lld images to %s; the other %lld can be read\n", (long long)n_moved, target,
               (long long)(audit.n - n_moved));
    else if (options->json != 1)
        printf("checked: all %lld images can be read\n", (long long)audit.n);
out:
    cvy_audit_free(&audit);
    cvy_dataset_free(train);
    cvy_dataset_free(val);
    return status;
}

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    if (values->rest.n != 1)
        return CVY_FAIL(CVY_ERR_USAGE, "name one data set, as in `convoy data check folder:DIR`");
    return check_spec(values->rest.data[0], values->options, log);
}

static const struct flag audit_flags[] = {
    {.name = "fix",
     .type = FLAG_TEXT,
     .offset = offsetof(struct options, fix),
     .help =
         "move:DIR moves the files that would stop a training to DIR, each with its path; nothing is deleted",
     .value_name = "move:DIR",
     .is_not_kept = true},
};
static const struct flag_group group_audit = {
    .title = "Mending", .flags = audit_flags, .n = sizeof audit_flags / sizeof audit_flags[0]};

static const struct flag_group *const groups[] = {&group_reading, &group_audit, &group_json, &group_common,
                                                  NULL};

const struct command command_data_check = {
    .name = "data check",
    .usage = "SPEC",
    .help = "read every image of a data set, and list what is bad or odd",
    .groups = groups,
    .run = run,
};

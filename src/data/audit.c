/* See audit.h. Duplicates are found by a hash of shape and pixels: each split's hashes go to one table, in order. */
#include "data/audit.h"

#include "base/text.h"
#include "data/decode.h"
#include "data/file_facts.h"
#include "data/survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { HUGE_PIXELS = 50000000, TINY_SIDE = 32, LEAST_SHARE = 10 };

static const struct {
    const char *name, *meaning;
} problems[] = {
#define CVY_PROBLEM(id, meaning_) {#id, meaning_},
#include "data/problems.def"
#undef CVY_PROBLEM
};

const char *cvy_problem_name(enum cvy_problem kind) { return problems[kind].name; }
const char *cvy_problem_meaning(enum cvy_problem kind) { return problems[kind].meaning; }

/* ---- in the workers ------------------------------------------------------------------------------------ */

struct item {
    struct cvy_error reason; /* CVY_OK: it could be read */
    struct cvy_file_facts file;
    bool is_empty, is_label_bad;
    int64_t height, width;
    uint64_t hash;
};

static uint64_t hash_of(const struct cvy_image *image) {
    const int64_t shape[] = {image->channels, image->height, image->width};
    size_t n_bytes = (size_t)(image->channels * image->height * image->width);
    n_bytes *= image->dtype == CVY_U8 ? 1 : sizeof(float);
    return XXH3_64bits_withSeed(image->pixels, n_bytes, XXH3_64bits(shape, sizeof shape));
}

/* The file is read a second time, now from the system's cache. */
static void look_at_file(const struct cvy_dataset *dataset, int64_t i, struct item *item) {
    char *bytes;
    size_t n_bytes;
    if (dataset->format->encoded(dataset, i, &bytes, &n_bytes) != CVY_OK)
        return;
    item->is_empty = n_bytes == 0;
    cvy_file_facts(bytes, n_bytes, &item->file);
    free(bytes);
}

static void look(const struct cvy_dataset *dataset, int64_t i, cvy_status status,
                 const struct cvy_image *image, void *out) {
    struct item *item = out;
    int64_t label;
    *item = (struct item){.file.orientation = 1};
    cvy_error_save(&item->reason, status);
    if (status == CVY_OK) {
        item->height = image->height;
        item->width = image->width;
        item->hash = hash_of(image);
    } else {
        item->is_label_bad = !dataset->is_unlabelled && cvy_dataset_label(dataset, i, &label) != CVY_OK;
    }
    if (dataset->format->encoded)
        look_at_file(dataset, i, item);
}

/* ---- findings ------------------------------------------------------------------------------------------ */

struct seen { /* open addressing; a slot with index 0 is free */
    struct {
        uint64_t hash;
        int64_t index_plus_1;
        const struct cvy_dataset *dataset;
    } * slots;
    size_t n_slots; /* a power of two, above twice the samples */
};

struct pass {
    struct cvy_audit *audit;
    const struct cvy_dataset *dataset;
    struct seen *seen;
    int64_t *per_class, n_before, n_all;
};

static cvy_status name_sample(struct cvy_pool *pool, const struct cvy_dataset *dataset, int64_t i,
                              char **out) {
    struct cvy_text name = {0};
    cvy_dataset_name(dataset, i, &name);
    cvy_status status = name.status == CVY_OK ? cvy_pool_strdup(pool, name.data, out) : name.status;
    cvy_text_free(&name);
    return status;
}

static cvy_status add(const struct pass *pass, enum cvy_problem kind, int64_t i, const char *detail) {
    struct cvy_audit *audit = pass->audit;
    char *name, *text;
    CVY_TRY(name_sample(&audit->pool, pass->dataset, i, &name));
    CVY_TRY(cvy_pool_printf(&audit->pool, &text, "%s: %s", name, detail));
    const struct cvy_finding finding = {.kind = kind,
                                        .split = pass->dataset->split,
                                        .path = pass->dataset->format->path ? name : NULL,
                                        .text = text};
    CVY_TRY(cvy_vec_push(&audit->findings, finding));
    return CVY_OK;
}

static enum cvy_problem kind_of(const struct item *item) {
    const struct cvy_file_facts *file = &item->file;
    if (item->is_empty)
        return CVY_PROBLEM_zero_bytes;
    if (file->is_animated)
        return CVY_PROBLEM_animated;
    if (item->is_label_bad)
        return CVY_PROBLEM_label_range;
    if (file->width > 0 && file->height > CVY_MAX_PIXELS / file->width)
        return CVY_PROBLEM_huge;
    return file->is_truncated ? CVY_PROBLEM_truncated : CVY_PROBLEM_unreadable;
}

/* The reason names the sample itself. */
static cvy_status add_bad(const struct pass *pass, int64_t i, const struct item *item) {
    struct cvy_audit *audit = pass->audit;
    struct cvy_finding finding = {.kind = kind_of(item), .stops = true, .split = pass->dataset->split};
    char *text;
    if (pass->dataset->format->path)
        finding.path = pass->dataset->format->path(pass->dataset, i);
    CVY_TRY(cvy_pool_strdup(&audit->pool, item->reason.message, &text));
    finding.text = text;
    CVY_TRY(cvy_vec_push(&audit->findings, finding));
    audit->n_stops++;
    return CVY_OK;
}

static cvy_status add_duplicate(const struct pass *pass, int64_t i, uint64_t hash) {
    struct seen *seen = pass->seen;
    size_t at = hash & (seen->n_slots - 1);
    char *name, *detail;
    while (seen->slots[at].index_plus_1 && seen->slots[at].hash != hash)
        at = (at + 1) & (seen->n_slots - 1);
    if (!seen->slots[at].index_plus_1) {
        seen->slots[at].hash = hash;
        seen->slots[at].index_plus_1 = i + 1;
        seen->slots[at].dataset = pass->dataset;
        return CVY_OK;
    }
    const struct cvy_dataset *other = seen->slots[at].dataset;
    CVY_TRY(name_sample(&pass->audit->pool, other, seen->slots[at].index_plus_1 - 1, &name));
    CVY_TRY(cvy_pool_printf(&pass->audit->pool, &detail, "as %s%s", name,
                            other == pass->dataset || other->format->path ? "" : " of training"));
    return add(pass, other == pass->dataset ? CVY_PROBLEM_duplicate : CVY_PROBLEM_duplicate_across, i,
               detail);
}

static cvy_status add_oddities(const struct pass *pass, int64_t i, const struct item *item) {
    const bool is_file = pass->dataset->format->path != NULL;
    const struct cvy_file_facts *file = &item->file;
    char size[64], turn[32];
    snprintf(size, sizeof size, "%lldx%lld", (long long)item->height, (long long)item->width);
    snprintf(turn, sizeof turn, "orientation %d", file->orientation);
    if (file->is_animated)
        CVY_TRY(add(pass, CVY_PROBLEM_animated, i, "the first picture is shown"));
    if (item->height * item->width > HUGE_PIXELS)
        CVY_TRY(add(pass, CVY_PROBLEM_huge, i, size));
    if (is_file && file->format &&
        !cvy_suffix_fits(pass->dataset->format->path(pass->dataset, i), file->format))
        CVY_TRY(add(pass, CVY_PROBLEM_wrong_suffix, i, file->format));
    if (file->converted)
        CVY_TRY(add(pass, CVY_PROBLEM_converted, i, file->converted));
    if (file->orientation != 1)
        CVY_TRY(add(pass, CVY_PROBLEM_exif_turned, i, turn));
    if (is_file && (item->height < TINY_SIDE || item->width < TINY_SIDE))
        CVY_TRY(add(pass, CVY_PROBLEM_tiny, i, size));
    return add_duplicate(pass, i, item->hash);
}

static cvy_status tell(void *context, int64_t i, const void *found) {
    struct pass *pass = context;
    const struct item *item = found;
    int64_t label;
    if (item->reason.code != CVY_OK)
        CVY_TRY(add_bad(pass, i, item));
    else
        CVY_TRY(add_oddities(pass, i, item));
    if (!pass->dataset->is_unlabelled && !item->is_label_bad) {
        CVY_TRY(cvy_dataset_label(pass->dataset, i, &label));
        pass->per_class[label]++;
    }
    if (pass->audit->progress.tell)
        pass->audit->progress.tell(pass->audit->progress.context, pass->n_before + i + 1, pass->n_all);
    return CVY_OK;
}

static cvy_status add_imbalance(const struct pass *pass) {
    const struct cvy_dataset *dataset = pass->dataset;
    int64_t largest = 0;
    for (int64_t k = 0; k < dataset->n_classes; k++)
        largest = pass->per_class[k] > largest ? pass->per_class[k] : largest;
    for (int64_t k = 0; k < dataset->n_classes; k++) {
        if (pass->per_class[k] * LEAST_SHARE >= largest)
            continue;
        struct cvy_finding finding = {.kind = CVY_PROBLEM_imbalance, .split = dataset->split};
        char *text;
        CVY_TRY(cvy_pool_printf(&pass->audit->pool, &text, "class '%s': %lld images, the largest has %lld",
                                dataset->class_names[k], (long long)pass->per_class[k], (long long)largest));
        finding.text = text;
        CVY_TRY(cvy_vec_push(&pass->audit->findings, finding));
    }
    return CVY_OK;
}

static cvy_status run_pass(struct pass *pass, int n_workers) {
    const struct cvy_survey survey = {
        .item_bytes = sizeof(struct item), .look = look, .tell = tell, .context = pass};
    CVY_TRY(CVY_ALLOC(pass->per_class, (size_t)pass->dataset->n_classes));
    cvy_status status = cvy_survey_run(&survey, pass->dataset, n_workers);
    if (status == CVY_OK)
        status = add_imbalance(pass);
    free(pass->per_class);
    return status;
}

cvy_status cvy_audit_run(const struct cvy_dataset *train, const struct cvy_dataset *val, int n_workers,
                         struct cvy_audit *audit) {
    struct seen seen = {.n_slots = 64};
    cvy_status status;
    audit->n = train->n + (val ? val->n : 0);
    while (seen.n_slots < 2 * (size_t)audit->n)
        seen.n_slots *= 2;
    struct pass first = {.audit = audit, .dataset = train, .seen = &seen, .n_all = audit->n};
    struct pass second = {
        .audit = audit, .dataset = val, .seen = &seen, .n_before = train->n, .n_all = audit->n};
    CVY_TRY(CVY_ALLOC(seen.slots, seen.n_slots));
    CVY_TRY_OUT(run_pass(&first, n_workers));
    if (val)
        CVY_TRY_OUT(run_pass(&second, n_workers));
out:
    free(seen.slots);
    return status;
}

void cvy_audit_free(struct cvy_audit *audit) {
    cvy_vec_free(&audit->findings);
    cvy_pool_free(&audit->pool);
}

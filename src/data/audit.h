/* The audit of a data set: what is wrong, or odd, in all its samples, by kind (problems.def). */
#ifndef CVY_DATA_AUDIT_H
#define CVY_DATA_AUDIT_H

#include "base/mem.h"
#include "base/vec.h"
#include "data/survey.h"

enum cvy_problem {
#define CVY_PROBLEM(id, meaning) CVY_PROBLEM_##id,
#include "data/problems.def"
#undef CVY_PROBLEM
    CVY_N_PROBLEMS
};
const char *cvy_problem_name(enum cvy_problem kind);
const char *cvy_problem_meaning(enum cvy_problem kind);

struct cvy_finding {
    enum cvy_problem kind;
    bool stops;       /* would it stop a training? */
    cvy_split split;  /* where it was found */
    const char *path; /* of the file; NULL: there is none */
    const char *text; /* names the sample, and says what there is */
};

/* Zero-initialised but for `progress`; released by cvy_audit_free. Findings refer to the data sets' texts. */
struct cvy_audit {
    struct cvy_survey_progress progress;
    CVY_VEC(struct cvy_finding) findings; /* training first, then validation, each in order */
    int64_t n, n_stops;                   /* samples; those that would stop a training */
    struct cvy_pool pool;
};

/* Reads both splits, `val` unless it is NULL, with n_workers threads, at least 1. */
cvy_status cvy_audit_run(const struct cvy_dataset *train, const struct cvy_dataset *val, int n_workers,
                         struct cvy_audit *audit);
void cvy_audit_free(struct cvy_audit *audit);

#endif

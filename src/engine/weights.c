/* Weights and optimiser state between a session and safetensors files, and the weights hash. */
#include "engine/tensors.h"
#include "engine/world.h"
#include "graph/safetensors.h"
#include "graph/weights_file.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- one stored value -------------------------------------------------------------------------------- */

struct transfer {
    const char *name;
    void *to;
    const void *from;
};

static cvy_status read_task(struct cvy_worker *worker, void *argument) {
    const struct transfer *t = argument;
    const struct cvy_stored *stored = cvy_store_find(&worker->store, t->name);
    return worker->program->replica == 0 && stored ? cvy_stored_read(worker, stored, t->to) : CVY_OK;
}

static cvy_status write_task(struct cvy_worker *worker, void *argument) {
    const struct transfer *t = argument;
    const struct cvy_stored *stored = cvy_store_find(&worker->store, t->name);
    return stored ? cvy_stored_write(worker, stored, t->from) : CVY_OK;
}

/* The first replica's device of the stage that has it reads, and its process tells the others. */
cvy_status cvy_session_read(struct cvy_session *session, const char *name, void *host) {
    struct cvy_plan *plan = session->plan;
    struct transfer t = {.name = name, .to = host};
    const struct cvy_stored *stored = NULL;
    int32_t stage = 0;
    for (; stage < plan->mesh.pipe && !(stored = cvy_store_find(&plan->stores[stage], name)); stage++) {
    }
    CVY_TRY(cvy_team_run(&plan->team, read_task, &t));
    return stored ? cvy_world_broadcast(plan->options.world, cvy_plan_process(plan, stage), host,
                                        cvy_desc_bytes(&stored->desc), name)
                  : CVY_OK;
}

cvy_status cvy_session_write(struct cvy_session *session, const char *name, const void *host) {
    struct transfer t = {.name = name, .from = host};
    return cvy_team_run(&session->plan->team, write_task, &t);
}

/* ---- selections of stored values --------------------------------------------------------------------- */

typedef bool (*selector)(const struct cvy_stored *stored);

static const struct cvy_stored *find_stored(const struct cvy_session *session, const char *name) {
    for (size_t i = 0; i < session->stored.n; i++) {
        if (strcmp(session->stored.data[i]->name, name) == 0)
            return session->stored.data[i];
    }
    return NULL;
}

static cvy_status save(struct cvy_session *session, selector select, const char *path) {
    struct cvy_tensors tensors = {.n = 0};
    cvy_world *world = session->plan->options.world;
    cvy_status status = cvy_tensors_open(session, select, &tensors);
    if (status == CVY_OK)
        status = cvy_tensors_read(session, &tensors);
    bool is_whole = status == CVY_OK;
    if (is_whole && cvy_world_rank(world) == 0)
        status = cvy_safetensors_write(path, tensors.data, tensors.n, NULL, 0);
    cvy_tensors_free(&tensors);
    return is_whole ? cvy_world_share_failure(world, status, path) : status;
}

/* As the last layer does for another number of classes. */
static bool differs_in_rows(const struct cvy_desc *a, const struct cvy_desc *b) {
    struct cvy_desc same = *a;
    if (a->shape.n < 1 || a->shape.n != b->shape.n)
        return false;
    same.shape.dim[0] = b->shape.dim[0];
    return same.dtype == b->dtype && cvy_shape_equal(&same.shape, &b->shape);
}

static cvy_status check_tensor(struct cvy_weights_file *file, const char *path, const struct cvy_stored *s) {
    struct cvy_desc desc;
    const void *bytes;
    if (!cvy_weights_file_has(file, s->name))
        return CVY_FAIL(CVY_ERR_DATA,
                        "%s: has no tensor '%s', which this model needs; is it of another model?", path,
                        s->name);
    CVY_TRY(cvy_weights_file_find(file, s->name, &desc, &bytes));
    if (desc.dtype == s->desc.dtype && cvy_shape_equal(&desc.shape, &s->desc.shape))
        return CVY_OK;
    struct cvy_text there = {0}, here = {0};
    cvy_desc_print(&there, &desc);
    cvy_desc_print(&here, &s->desc);
    cvy_status status = CVY_FAIL(
        CVY_ERR_DATA, "%s: tensor '%s' is %s, this model needs %s%s", path, s->name,
        there.data ? there.data : "?", here.data ? here.data : "?",
        differs_in_rows(&desc, &s->desc) ? "; for another number of classes: train with --replace-head" : "");
    cvy_text_free(&there);
    cvy_text_free(&here);
    return status;
}

/* What of a file is loaded: all that is selected but those names, which the file may have or not, and but the auxiliary
   heads where it has none of them. */
struct wanted {
    selector select;
    const char *const *but;
    size_t n_but;
    bool lacks_auxiliary;
};

static bool is_left_out(const struct wanted *wanted, const char *name) {
    for (size_t i = 0; i < wanted->n_but; i++) {
        if (strcmp(wanted->but[i], name) == 0)
            return true;
    }
    return false;
}

static bool is_wanted(const struct wanted *wanted, const struct cvy_stored *s) {
    return wanted->select(s) && !is_left_out(wanted, s->name) &&
           !(wanted->lacks_auxiliary && s->is_auxiliary);
}

/* PyTorch before 0.4.1 did not count batches, and files of that time are still about; it takes them, too. */
static bool is_uncounted(const struct cvy_weights_file *file, const struct cvy_stored *s) {
    static const char count[] = ".num_batches_tracked";
    size_t n = strlen(s->name);
    return s->kind == CVY_VALUE_BUFFER && n >= sizeof count &&
           strcmp(s->name + n - (sizeof count - 1), count) == 0 && !cvy_weights_file_has(file, s->name);
}

/* Everything is checked before anything is changed. */
static cvy_status check_file(const struct cvy_session *session, const struct wanted *wanted, const char *path,
                             struct cvy_weights_file *file) {
    for (size_t i = 0; i < session->stored.n; i++) {
        if (is_wanted(wanted, session->stored.data[i]) && !is_uncounted(file, session->stored.data[i]))
            CVY_TRY(check_tensor(file, path, session->stored.data[i]));
    }
    for (size_t i = 0; i < cvy_weights_file_count(file); i++) {
        const char *name = cvy_weights_file_name(file, i);
        const struct cvy_stored *s = find_stored(session, name);
        if (!is_left_out(wanted, name) && (!s || !wanted->select(s)))
            return CVY_FAIL(CVY_ERR_DATA,
                            "%s: has a tensor '%s' that this model lacks; is it of another model?", path,
                            name);
    }
    return CVY_OK;
}

static cvy_status load_values(struct cvy_session *session, const struct wanted *wanted,
                              struct cvy_weights_file *file) {
    void *host = NULL, *own = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_session_borrow(session, &host, &own));
    for (size_t i = 0; i < session->stored.n; i++) {
        const struct cvy_stored *s = session->stored.data[i];
        struct cvy_desc desc;
        const void *bytes;
        if (!is_wanted(wanted, s) || is_uncounted(file, s))
            continue;
        CVY_TRY_OUT(cvy_weights_file_find(file, s->name, &desc, &bytes));
        memcpy(host, bytes, cvy_desc_bytes(&desc)); /* the file's bytes lie at any address */
        CVY_TRY_OUT(cvy_session_write(session, s->name, host));
    }
out:
    free(own);
    return status;
}

/* Are there auxiliary heads, of which the file has nothing? */
static bool lacks_auxiliary(const struct cvy_session *session, const struct cvy_weights_file *file) {
    bool any = false;
    for (size_t i = 0; i < session->stored.n; i++) {
        const struct cvy_stored *s = session->stored.data[i];
        if (s->is_auxiliary && cvy_weights_file_has(file, s->name))
            return false;
        any = any || s->is_auxiliary;
    }
    return any;
}

static cvy_status load(struct cvy_session *session, const struct wanted *given, const char *path) {
    struct wanted wanted = *given;
    struct cvy_weights_file *file = NULL;
    CVY_TRY(cvy_weights_file_open(path, &file));
    wanted.lacks_auxiliary = lacks_auxiliary(session, file);
    cvy_status status = check_file(session, &wanted, path, file);
    if (status == CVY_OK)
        status = load_values(session, &wanted, file);
    if (status == CVY_OK && wanted.lacks_auxiliary && session->plan->train &&
        wanted.select == cvy_stored_is_weight)
        cvy_log(&session->plan->options.log, CVY_LOG_INFO, "%s has no auxiliary heads: they are new", path);
    cvy_weights_file_free(file);
    return status == CVY_OK ? cvy_session_spread(session) : status;
}

/* ---- the interface ----------------------------------------------------------------------------------- */

cvy_status cvy_load_weights(cvy_session *session, const char *path) {
    return load(session, &(struct wanted){.select = cvy_stored_is_weight}, path);
}

cvy_status cvy_session_load_body(struct cvy_session *session, const char *path, const char *const *head,
                                 size_t n) {
    return load(session, &(struct wanted){.select = cvy_stored_is_weight, .but = head, .n_but = n}, path);
}

cvy_status cvy_save_weights(cvy_session *session, const char *path) {
    return save(session, cvy_stored_is_weight, path);
}

cvy_status cvy_session_save_optimizer(cvy_session *session, const char *path) {
    return save(session, cvy_stored_is_state, path);
}

cvy_status cvy_session_load_optimizer(cvy_session *session, const char *path, int64_t n_updates) {
    CVY_TRY(load(session, &(struct wanted){.select = cvy_stored_is_state}, path));
    session->n_updates = (uint64_t)n_updates;
    return CVY_OK;
}

cvy_status cvy_weights_hash(cvy_session *session, uint64_t *out) {
    struct cvy_tensors tensors = {.n = 0};
    XXH3_state_t *state = XXH3_createState();
    cvy_status status = state ? cvy_tensors_open(session, cvy_stored_is_weight, &tensors)
                              : CVY_FAIL(CVY_ERR_MEMORY, "no memory for the weights hash");
    if (status == CVY_OK)
        status = cvy_tensors_read(session, &tensors);
    if (status == CVY_OK) {
        XXH3_64bits_reset(state);
        for (size_t i = 0; i < tensors.n; i++) {
            const struct cvy_safetensor *t = &tensors.data[i];
            XXH3_64bits_update(state, t->name, strlen(t->name) + 1);
            XXH3_64bits_update(state, t->desc.shape.dim, (size_t)t->desc.shape.n * sizeof *t->desc.shape.dim);
            XXH3_64bits_update(state, t->bytes, cvy_desc_bytes(&t->desc));
        }
        *out = XXH3_64bits_digest(state);
    }
    XXH3_freeState(state);
    cvy_tensors_free(&tensors);
    return status;
}

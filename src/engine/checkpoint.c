/* See checkpoint.h. A folder cannot be renamed over one that is not empty; renameat2 exchanges the two in one
   step, and where the file system cannot do that the old one is moved aside for a moment. */
#include "engine/checkpoint.h"

#include "base/file.h"
#include "engine/manifest.h"
#include "engine/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WEIGHTS "model.safetensors"
#define OPTIMIZER "optimizer.safetensors"
#define STATE "state.json"
#define AVERAGE "ema.safetensors"

static const char *const files[] = {WEIGHTS, OPTIMIZER, STATE, AVERAGE, CVY_MANIFEST};
enum { N_FILES = sizeof files / sizeof files[0], N_CONTENTS = N_FILES - 1 };

/* ---- folders ------------------------------------------------------------------------------------------ */

/* Removes a checkpoint's own files, whole or half-written, then the folder; leaves anything else alone. Of a link only
   the link: what it points to is somebody else's. */
static void remove_checkpoint(const char *folder) {
    const char *suffixes[] = {"", ".tmp"};
    struct stat info;
    if (lstat(folder, &info) == 0 && S_ISLNK(info.st_mode)) {
        unlink(folder);
        return;
    }
    for (int i = 0; i < N_FILES; i++)
        for (int k = 0; k < 2; k++) {
            char *path;
            if (cvy_path(folder, files[i], suffixes[k], &path) == CVY_OK) {
                unlink(path);
                free(path);
            }
        }
    rmdir(folder);
}

/* `fresh` takes the name `place` in `dir`; what had it before is removed, but only once that is on the disk. */
static cvy_status put_in_place(const char *dir, const char *fresh, const char *place, const char *aside) {
    if (renameat2(AT_FDCWD, fresh, AT_FDCWD, place, RENAME_NOREPLACE) == 0)
        return cvy_sync_folder(dir);
    if (renameat2(AT_FDCWD, fresh, AT_FDCWD, place, RENAME_EXCHANGE) == 0) {
        CVY_TRY(cvy_sync_folder(dir));
        remove_checkpoint(fresh);
        return CVY_OK;
    }
    remove_checkpoint(aside);
    bool had_one = rename(place, aside) == 0;
    if (rename(fresh, place) != 0) {
        int reason = errno;
        if (had_one && rename(aside, place) != 0)
            return CVY_FAIL(CVY_ERR_IO, "%s: cannot be put back in its place: %s", aside, strerror(errno));
        return CVY_FAIL(CVY_ERR_IO, "%s: cannot be replaced: %s", place, strerror(reason));
    }
    CVY_TRY(cvy_sync_folder(dir));
    remove_checkpoint(aside);
    return CVY_OK;
}

/* ---- whole or not --------------------------------------------------------------------------------------- */

cvy_status cvy_checkpoint_state(const char *folder, struct cvy_train_state *out) {
    char *path;
    CVY_TRY(cvy_path(folder, STATE, "", &path));
    cvy_status status = cvy_train_state_read(path, out);
    free(path);
    return status;
}

cvy_status cvy_checkpoint_verify(const char *folder, bool *has_manifest) {
    return cvy_manifest_verify(folder, NULL, has_manifest);
}

static bool is_whole(const char *folder) {
    bool has_manifest;
    return cvy_manifest_verify(folder, NULL, &has_manifest) == CVY_OK && has_manifest;
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* ---- save and load ------------------------------------------------------------------------------------ */

cvy_status cvy_snapshot_take(struct cvy_snapshot *snapshot, cvy_session *session,
                             const struct cvy_train_state *state, const struct cvy_ema *ema) {
    if (!snapshot->weights.data)
        CVY_TRY(cvy_tensors_open(session, cvy_stored_is_weight, &snapshot->weights));
    if (!snapshot->optimizer.data)
        CVY_TRY(cvy_tensors_open(session, cvy_stored_is_state, &snapshot->optimizer));
    if (ema->session && !snapshot->average.data)
        CVY_TRY(cvy_tensors_open(session, cvy_stored_is_weight, &snapshot->average));
    CVY_TRY(cvy_tensors_read(session, &snapshot->weights));
    CVY_TRY(cvy_tensors_read(session, &snapshot->optimizer));
    if (ema->session) /* it lies in the same order */
        memcpy(snapshot->average.block, ema->average, snapshot->average.n_bytes);
    snapshot->state = *state;
    return CVY_OK;
}

void cvy_snapshot_free(struct cvy_snapshot *snapshot) {
    cvy_tensors_free(&snapshot->weights);
    cvy_tensors_free(&snapshot->optimizer);
    cvy_tensors_free(&snapshot->average);
}

static cvy_status load_average(struct cvy_ema *ema, const char *path, const struct cvy_train_state *state) {
    if (!ema->session)
        return CVY_OK;
    if (access(path, F_OK) != 0)
        return CVY_FAIL(
            CVY_ERR_USAGE,
            "--model-ema: %s is not there, for the run that goes on had no such average; leave the flag "
            "out, or begin a new run with --weights",
            path);
    CVY_TRY(cvy_load_weights(ema->session, path));
    ema->n_averaged = state->n_averaged;
    return cvy_ema_copy(ema);
}

static cvy_status write_files(const char *folder, const struct cvy_card *card,
                              const struct cvy_snapshot *snapshot) {
    char *path[N_FILES] = {NULL};
    cvy_status status = CVY_OK;
    for (int i = 0; i < N_FILES && status == CVY_OK; i++)
        status = cvy_path(folder, files[i], "", &path[i]);
    if (status == CVY_OK)
        status = cvy_card_write(card, &snapshot->weights, path[0]);
    if (status == CVY_OK)
        status = cvy_safetensors_write(path[1], snapshot->optimizer.data, snapshot->optimizer.n, NULL, 0);
    if (status == CVY_OK)
        status = cvy_train_state_write(path[2], &snapshot->state);
    if (status == CVY_OK && snapshot->average.data)
        status = cvy_card_write(card, &snapshot->average, path[3]);
    if (status == CVY_OK)
        status = cvy_manifest_write(folder, files, N_CONTENTS);
    if (status == CVY_OK)
        status = cvy_sync_folder(folder);
    for (int i = 0; i < N_FILES; i++)
        free(path[i]);
    return status;
}

cvy_status cvy_checkpoint_write(const char *dir, const char *name, const struct cvy_card *card,
                                const struct cvy_snapshot *snapshot) {
    char *place = NULL, *fresh = NULL, *aside = NULL;
    cvy_status status;
    CVY_TRY_OUT(cvy_path(dir, name, "", &place));
    CVY_TRY_OUT(cvy_path(dir, name, ".new", &fresh));
    CVY_TRY_OUT(cvy_path(dir, name, ".old", &aside));
    cvy_checkpoint_tidy(dir, name);
    CVY_TRY_OUT(cvy_make_folder(fresh));
    status = write_files(fresh, card, snapshot);
    if (status == CVY_OK)
        status = put_in_place(dir, fresh, place, aside);
    if (status != CVY_OK)
        remove_checkpoint(fresh);
out:
    free(place);
    free(fresh);
    free(aside);
    return status;
}

/* A whole one stays. What was moved aside is whole, whether its version of Convoy wrote manifests or not: it had the
   name. The new one is whole when its manifest says so. */
static void tidy(const char *place, const char *fresh, const char *aside) {
    bool has_fresh = is_folder(fresh), has_aside = is_folder(aside);
    if (!has_fresh && !has_aside)
        return;
    if (!is_folder(place) || !is_whole(place)) {
        const char *better = has_aside && (is_whole(aside) || !is_folder(place)) ? aside
                             : has_fresh && is_whole(fresh)                      ? fresh
                                                                                 : NULL;
        if (better) {
            remove_checkpoint(place);
            if (rename(better, place) != 0)
                return; /* all stay as they are */
        }
    }
    remove_checkpoint(fresh);
    remove_checkpoint(aside);
}

void cvy_checkpoint_tidy(const char *dir, const char *name) {
    char *place = NULL, *fresh = NULL, *aside = NULL;
    if (cvy_path(dir, name, "", &place) == CVY_OK && cvy_path(dir, name, ".new", &fresh) == CVY_OK &&
        cvy_path(dir, name, ".old", &aside) == CVY_OK)
        tidy(place, fresh, aside);
    free(place);
    free(fresh);
    free(aside);
}

void cvy_checkpoint_remove(const char *dir, const char *name) {
    char *place;
    if (cvy_path(dir, name, "", &place) == CVY_OK) {
        remove_checkpoint(place);
        free(place);
    }
}

cvy_status cvy_checkpoint_load(const char *folder, cvy_session *session, const struct cvy_train_state *state,
                               struct cvy_ema *ema) {
    char *weights = NULL, *optimizer = NULL, *average = NULL;
    cvy_status status;
    CVY_TRY_OUT(cvy_path(folder, WEIGHTS, "", &weights));
    CVY_TRY_OUT(cvy_path(folder, OPTIMIZER, "", &optimizer));
    CVY_TRY_OUT(cvy_path(folder, AVERAGE, "", &average));
    CVY_TRY_OUT(load_average(ema, average, state));
    CVY_TRY_OUT(cvy_load_weights(session, weights));
    CVY_TRY_OUT(cvy_session_load_optimizer(session, optimizer, state->n_updates));
    if (session->scale.scale > 0 && state->scale.scale > 0)
        session->scale = state->scale;
    session->scale.n_skipped = state->scale.n_skipped; /* the optimiser has not counted them */
out:
    free(weights);
    free(optimizer);
    free(average);
    return status;
}

/* ---- finding ------------------------------------------------------------------------------------------ */

cvy_status cvy_checkpoint_find(const char *path, const char *name, const char *file, char **out) {
    char *below = NULL, *direct = NULL, *nested = NULL;
    cvy_status status;
    CVY_TRY_OUT(cvy_path(path, name, "", &below));
    CVY_TRY_OUT(cvy_path(path, file, "", &direct));
    CVY_TRY_OUT(cvy_path(below, file, "", &nested));
    if (access(direct, R_OK) == 0) {
        *out = strdup(path);
        status = *out ? CVY_OK : CVY_FAIL(CVY_ERR_MEMORY, "%s: out of memory", path);
    } else if (access(nested, R_OK) == 0) {
        *out = below;
        below = NULL;
    } else {
        status = CVY_FAIL(CVY_ERR_DATA, "%s: no checkpoint is there: neither %s nor %s/%s can be read", path,
                          file, name, file);
    }
out:
    free(below);
    free(direct);
    free(nested);
    return status;
}

cvy_status cvy_weights_find(const char *path, char **out) {
    struct stat info;
    if (stat(path, &info) != 0)
        return CVY_FAIL(CVY_ERR_DATA, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode)) {
        *out = strdup(path);
        return *out ? CVY_OK : CVY_FAIL(CVY_ERR_MEMORY, "%s: out of memory", path);
    }
    char *folder;
    CVY_TRY(cvy_checkpoint_find(path, "best", WEIGHTS, &folder));
    bool has_manifest;
    cvy_status status = cvy_manifest_verify(folder, WEIGHTS, &has_manifest);
    if (status == CVY_OK)
        status = cvy_path(folder, WEIGHTS, "", out);
    free(folder);
    return status;
}

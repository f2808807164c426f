/* See world.h: joining the processes of a run, and small talk between their main threads. */
#include "engine/world.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIFFERENCE = 384 }; /* bytes of the line that says where two processes differ */

/* ---- joining and parting ----------------------------------------------------------------------------- */

/* The group of the main threads. */
static cvy_status open_group(cvy_world *world, double timeout_s) {
    struct cvy_group **members = NULL;
    int32_t *process = NULL;
    cvy_status status;
    CVY_TRY_OUT(CVY_ALLOC(members, (size_t)world->size));
    CVY_TRY_OUT(CVY_ALLOC(process, (size_t)world->size));
    for (int i = 0; i < world->size; i++)
        process[i] = i;
    const struct cvy_group_spec spec = {
        .world = world, .n = world->size, .process = process, .timeout_s = timeout_s};
    CVY_TRY_OUT(world->transport->open(&spec, members));
    world->main_thread = members[world->rank];
out:
    free(members);
    free(process);
    return status;
}

cvy_status cvy_world_open(double timeout_s, const cvy_log_sink *log, cvy_world **out) {
    const struct cvy_transport *transport = cvy_transport_launched();
    const cvy_log_sink none = {0};
    cvy_world *world = NULL;
    timeout_s = timeout_s > 0 ? timeout_s : 30;
    if (!transport) {
        CVY_TRY(CVY_ALLOC(world, 1));
        *world = (cvy_world){.size = 1, .core_size = 1};
        *out = world;
        return CVY_OK;
    }
    CVY_TRY(transport->join(timeout_s, log ? log : &none, &world));
    cvy_status status = world->size > 1 ? open_group(world, timeout_s) : CVY_OK;
    if (status != CVY_OK) {
        (void)transport->leave(world, cvy_error());
        return status;
    }
    *out = world;
    return CVY_OK;
}

cvy_status cvy_world_close(cvy_world *world, cvy_status status) {
    if (!world)
        return CVY_OK;
    if (!world->transport) {
        free(world);
        return CVY_OK;
    }
    if (world->main_thread)
        world->transport->close(1, &world->main_thread);
    if (status == CVY_OK || world->has_failed_alike)
        return world->transport->leave(world, NULL);
    char reason[CVY_ERROR_TEXT];
    snprintf(reason, sizeof reason, "rank %d ended: %.480s", world->rank, cvy_error());
    return world->transport->leave(world, reason);
}

int cvy_world_rank(const cvy_world *world) { return world ? world->rank : 0; }
int cvy_world_size(const cvy_world *world) { return world ? world->size : 1; }

/* ---- small talk -------------------------------------------------------------------------------------- */

cvy_status cvy_world_broadcast(cvy_world *world, int root, void *bytes, size_t n_bytes, const char *name) {
    if (cvy_world_size(world) == 1)
        return CVY_OK;
    return world->transport->broadcast(world->main_thread, root, bytes, n_bytes, name);
}

cvy_status cvy_world_gather(cvy_world *world, void *all, size_t n_bytes, const char *name) {
    for (int root = 0; root < cvy_world_size(world); root++)
        CVY_TRY(cvy_world_broadcast(world, root, (char *)all + (size_t)root * n_bytes, n_bytes, name));
    return CVY_OK;
}

cvy_status cvy_world_max(cvy_world *world, int64_t *value, const char *name) {
    for (int root = 0; root < cvy_world_size(world); root++) {
        int64_t theirs = *value;
        CVY_TRY(cvy_world_broadcast(world, root, &theirs, sizeof theirs, name));
        *value = theirs > *value ? theirs : *value;
    }
    return CVY_OK;
}

/* ---- agreement --------------------------------------------------------------------------------------- */

/* The first line in which two texts differ, "" where one has ended. */
static void find_difference(int rank, const char *mine, const char *first, char out[DIFFERENCE]) {
    size_t n = strcspn(mine, "\n"), n_first = strcspn(first, "\n");
    while (n == n_first && memcmp(mine, first, n) == 0) {
        if (!mine[n] && !first[n])
            return;
        mine += mine[n] ? n + 1 : n;
        first += first[n_first] ? n_first + 1 : n_first;
        n = strcspn(mine, "\n");
        n_first = strcspn(first, "\n");
    }
    enum { MOST = 120 };
    snprintf(out, DIFFERENCE, "rank %d has '%.*s%s' where rank 0 has '%.*s%s'", rank,
             n > MOST ? MOST : (int)n, mine, n > MOST ? "…" : "", n_first > MOST ? MOST : (int)n_first, first,
             n_first > MOST ? "…" : "");
}

/* Rank 0's text; the caller frees it. */
static cvy_status fetch_first(cvy_world *world, const char *mine, const char *name, char **out) {
    int64_t n = (int64_t)strlen(mine) + 1;
    CVY_TRY(cvy_world_broadcast(world, 0, &n, sizeof n, name));
    CVY_TRY(CVY_ALLOC(*out, (size_t)n));
    if (world->rank == 0)
        memcpy(*out, mine, (size_t)n);
    return cvy_world_broadcast(world, 0, *out, (size_t)n, name);
}

cvy_status cvy_world_agree(cvy_world *world, const char *text, const char *name) {
    int size = cvy_world_size(world);
    char *first = NULL, *differences = NULL;
    cvy_status status;
    if (size == 1)
        return CVY_OK;
    CVY_TRY_OUT(CVY_ALLOC(differences, (size_t)size * DIFFERENCE));
    CVY_TRY_OUT(fetch_first(world, text, name, &first));
    find_difference(world->rank, text, first, differences + (size_t)world->rank * DIFFERENCE);
    CVY_TRY_OUT(cvy_world_gather(world, differences, DIFFERENCE, name));
    for (int i = 0; i < size && status == CVY_OK; i++) {
        const char *difference = differences + (size_t)i * DIFFERENCE;
        world->has_failed_alike |= *difference != 0;
        if (*difference)
            status =
                CVY_FAIL(CVY_ERR_USAGE, "the processes of this run differ in %s: %s; start all of them alike",
                         name, difference);
    }
out:
    free(first);
    free(differences);
    return status;
}

cvy_status cvy_world_meet_failure(cvy_world *world, cvy_status status, const char *name) {
    int size = cvy_world_size(world), n_failed = 0, first = 0;
    struct cvy_error *errors = NULL, mine;
    if (size == 1)
        return status;
    cvy_error_save(&mine, status);
    CVY_TRY(CVY_ALLOC(errors, (size_t)size));
    errors[world->rank] = mine;
    cvy_status told = cvy_world_gather(world, errors, sizeof *errors, name);
    for (int i = size - 1; i >= 0 && told == CVY_OK; i--) {
        if (errors[i].code == CVY_OK)
            continue;
        n_failed++;
        first = i;
    }
    world->has_failed_alike |= n_failed == size;
    if (told == CVY_OK && status == CVY_OK && n_failed > 0)
        told = CVY_FAIL(CVY_ERR_LOST, "rank %d ended: %.480s", first, errors[first].message);
    free(errors);
    return status != CVY_OK ? cvy_error_restore(&mine) : told;
}

cvy_status cvy_world_share_failure(cvy_world *world, cvy_status status, const char *name) {
    int size = cvy_world_size(world);
    struct cvy_error *errors = NULL;
    cvy_status result = status;
    if (size == 1)
        return status;
    CVY_TRY(CVY_ALLOC(errors, (size_t)size));
    errors[world->rank].code = CVY_OK;
    if (status != CVY_OK)
        cvy_error_save(&errors[world->rank], status);
    cvy_status told = cvy_world_gather(world, errors, sizeof *errors, name);
    for (int i = 0; i < size && told == CVY_OK; i++) {
        if (errors[i].code != CVY_OK) {
            world->has_failed_alike = true;
            result = cvy_error_restore(&errors[i]);
            break;
        }
    }
    free(errors);
    return told == CVY_OK ? result : told;
}

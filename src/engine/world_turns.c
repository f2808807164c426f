/* Work of which rank 0 does its part first. The work runs in a thread of its own, so that the main threads can tell
   each other that nobody is lost: it may take longer than any deadline. */
#include "engine/world.h"

#include "base/thread.h"

#include <stdatomic.h>

enum { BEAT_NS = 200000000 };

struct turn {
    cvy_status (*work)(void *context);
    void *context;
    struct cvy_counter done; /* 1: it is */
    struct cvy_error result;
};

static void *run(void *argument) {
    struct turn *turn = argument;
    cvy_error_save(&turn->result, turn->work(turn->context));
    cvy_counter_add(&turn->done, 1);
    return NULL;
}

/* Until those whose turn it is are done; NULL: it is not this one's. */
static cvy_status wait_all(cvy_world *world, struct turn *turn, const char *name) {
    for (int64_t is_busy = 1; is_busy;) {
        if (turn)
            cvy_counter_nap(&turn->done, 1, BEAT_NS);
        is_busy = turn && atomic_load(&turn->done.value) == 0;
        CVY_TRY(cvy_world_max(world, &is_busy, name));
    }
    return CVY_OK;
}

/* An error is one of the wait; the work has its own. */
static cvy_status take_turn(cvy_world *world, struct turn *turn, const char *name) {
    pthread_t thread;
    CVY_TRY(cvy_counter_init(&turn->done));
    cvy_status status = cvy_thread_start(&thread, "cvy-turn", run, turn);
    if (status == CVY_OK) {
        status = wait_all(world, turn, name);
        pthread_join(thread, NULL);
    } else {
        cvy_error_save(&turn->result, status);
        status = wait_all(world, NULL, name);
    }
    cvy_counter_free(&turn->done);
    return status;
}

cvy_status cvy_world_in_turn(cvy_world *world, cvy_status (*work)(void *context), void *context,
                             const char *name) {
    struct turn turn = {.work = work, .context = context};
    if (cvy_world_size(world) == 1)
        return work(context);
    for (int round = 0; round < 2; round++) {
        bool is_mine = round == (cvy_world_rank(world) > 0);
        CVY_TRY(is_mine ? take_turn(world, &turn, name) : wait_all(world, NULL, name));
    }
    return cvy_error_restore(&turn.result);
}

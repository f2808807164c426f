/* See checkpoint_writer.h. Of two counters each is advanced by one side: a checkpoint is under way while they differ,
   and then the snapshot is the thread's. */
#include "engine/checkpoint_writer.h"

enum { LONGEST_S = 3600 }; /* for a disk to take a checkpoint */
static const int64_t nap_ns = 1000000000;

static void *write_what_is_asked(void *argument) {
    struct cvy_checkpoint_writer *w = argument;
    for (uint64_t n = 1;;) {
        if (w->asked.value < n) {
            if (w->is_closing)
                return NULL;
            cvy_counter_nap(&w->asked, n, nap_ns);
            continue;
        }
        cvy_status status = CVY_OK;
        if (w->has_best)
            status = cvy_checkpoint_write(w->dir, "best", w->card, &w->snapshot);
        if (status == CVY_OK)
            status = cvy_checkpoint_write(w->dir, "last", w->card, &w->snapshot);
        cvy_error_save(&w->outcome, status);
        cvy_counter_add(&w->done, 1);
        n++;
    }
}

cvy_status cvy_checkpoint_writer_open(struct cvy_checkpoint_writer *writer, const char *dir,
                                      const struct cvy_card *card) {
    writer->dir = dir;
    writer->card = card;
    CVY_TRY(cvy_counter_init(&writer->asked));
    cvy_status status = cvy_counter_init(&writer->done);
    if (status != CVY_OK)
        cvy_counter_free(&writer->asked);
    writer->is_open = status == CVY_OK;
    return status;
}

cvy_status cvy_checkpoint_writer_begin(struct cvy_checkpoint_writer *writer, bool has_best) {
    if (!writer->is_running)
        CVY_TRY(cvy_thread_start(&writer->thread, "checkpoints", write_what_is_asked, writer));
    writer->is_running = true;
    writer->has_best = has_best;
    writer->n_asked++;
    cvy_counter_add(&writer->asked, 1);
    return CVY_OK;
}

bool cvy_checkpoint_writer_is_busy(const struct cvy_checkpoint_writer *writer) {
    return writer->done.value < writer->n_asked;
}

cvy_status cvy_checkpoint_writer_settle(struct cvy_checkpoint_writer *writer, bool *is_new) {
    *is_new = false;
    if (writer->n_settled == writer->n_asked)
        return CVY_OK;
    CVY_TRY(cvy_counter_wait(&writer->done, writer->n_asked, LONGEST_S, NULL, "writing a checkpoint"));
    writer->n_settled = writer->n_asked;
    *is_new = true;
    return writer->outcome.code == CVY_OK ? CVY_OK : cvy_error_restore(&writer->outcome);
}

void cvy_checkpoint_writer_close(struct cvy_checkpoint_writer *writer) {
    if (writer->is_running) {
        writer->is_closing = true;
        cvy_counter_wake(&writer->asked);
        pthread_join(writer->thread, NULL);
    }
    if (writer->is_open) {
        cvy_counter_free(&writer->asked);
        cvy_counter_free(&writer->done);
    }
    cvy_snapshot_free(&writer->snapshot);
    *writer = (struct cvy_checkpoint_writer){.n_asked = 0};
}

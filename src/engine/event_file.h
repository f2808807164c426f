/* events.out.tfevents.convoy: the numbers of metrics.jsonl for TensorBoard, in its own format. Records of
     length (8 bytes), masked CRC-32C of the length (4), an Event in protocol buffers' encoding, its masked CRC-32C (4)
   all little-endian. As in metrics.jsonl, a record is whole in the file or not there at all. */
#ifndef CVY_ENGINE_EVENT_FILE_H
#define CVY_ENGINE_EVENT_FILE_H

#include "engine/metrics.h"

struct cvy_event_file;

/* A new file begins with the version of the format. One that is there already is gone on with, unless is_new: what a
   crash left of a last record is cut off, and TensorBoard is told that updates from `update` on come again. Local. */
cvy_status cvy_event_file_open(const char *path, bool is_new, int64_t update, struct cvy_event_file **out);
cvy_status cvy_event_file_step(struct cvy_event_file *file, const struct cvy_step_report *report);
/* n_steps: updates of an epoch. */
cvy_status cvy_event_file_epoch(struct cvy_event_file *file, const struct cvy_epoch_report *report,
                                int64_t n_steps);
void cvy_event_file_close(struct cvy_event_file *file); /* NULL: nothing */

/* The masked CRC of the format: the CRC-32C rotated right by 15 bits, plus a constant. */
uint32_t cvy_masked_crc(const void *bytes, size_t n_bytes);

#endif

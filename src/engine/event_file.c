/* See event_file.h. Fields by number, of tensorflow's event.proto and summary.proto:
     Event: wall_time 1 (double), step 2 (int64), file_version 3 (string), summary 5, session_log 7
     SessionLog: status 1 (START = 1)     Summary: value 1, repeated
     Value: tag 1 (string), simple_value 2 (float) */
#include "engine/event_file.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum { HEADER = 12, FOOTER = 4 }; /* bytes of a record around its event */
enum { LONGEST = 1 << 20 };       /* of an event: ours have some hundred bytes */

struct cvy_event_file {
    int fd;
    char *path;
};

uint32_t cvy_masked_crc(const void *bytes, size_t n_bytes) {
    const uint8_t *at = bytes;
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n_bytes; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0); /* Castagnoli's polynomial, lowest bit first */
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* ---- protocol buffers ---------------------------------------------------------------------------------- */

static void put_little(struct cvy_text *out, uint64_t value, int n_bytes) {
    char bytes[8];
    for (int i = 0; i < n_bytes; i++)
        bytes[i] = (char)(value >> 8 * i);
    cvy_text_append(out, bytes, (size_t)n_bytes);
}

static uint64_t get_little(const uint8_t *bytes, int n_bytes) {
    uint64_t value = 0;
    for (int i = n_bytes - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

static void put_varint(struct cvy_text *out, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        put_little(out, value | 0x80, 1);
    put_little(out, value, 1);
}

static void put_key(struct cvy_text *out, unsigned field, unsigned wire) {
    put_varint(out, field << 3 | wire);
}

static void put_bytes(struct cvy_text *out, unsigned field, const char *bytes, size_t n) {
    put_key(out, field, WIRE_BYTES);
    put_varint(out, n);
    if (n)
        cvy_text_append(out, bytes, n);
}

static void put_double(struct cvy_text *out, unsigned field, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(out, field, WIRE_64);
    put_little(out, bits, 8);
}

/* A summary's value. */
static void put_scalar(struct cvy_text *summary, const char *tag, double value) {
    struct cvy_text item = {0};
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    put_bytes(&item, 1, tag, strlen(tag));
    put_key(&item, 2, WIRE_32);
    put_little(&item, bits, 4);
    put_bytes(summary, 1, item.data, item.n);
    if (item.status != CVY_OK)
        summary->status = item.status;
    cvy_text_free(&item);
}

/* ---- records ------------------------------------------------------------------------------------------- */

static double wall_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Writes an event with one more field, `body`, which is released. */
static cvy_status append(struct cvy_event_file *file, int64_t step, unsigned field, struct cvy_text *body) {
    struct cvy_text event = {0}, record = {0};
    put_double(&event, 1, wall_time());
    if (step) {
        put_key(&event, 2, WIRE_VARINT);
        put_varint(&event, (uint64_t)step);
    }
    put_bytes(&event, field, body->data, body->n);
    put_little(&record, event.n, 8);
    if (record.status == CVY_OK)
        put_little(&record, cvy_masked_crc(record.data, 8), 4);
    if (event.status == CVY_OK) {
        cvy_text_append(&record, event.data, event.n);
        put_little(&record, cvy_masked_crc(event.data, event.n), 4);
    }
    cvy_status status = body->status != CVY_OK    ? body->status
                        : event.status != CVY_OK  ? event.status
                        : record.status != CVY_OK ? record.status
                                                  : CVY_OK;
    status = status == CVY_OK ? cvy_append_whole(file->fd, file->path, record.data, record.n)
                              : CVY_FAIL(status, "%s: no memory for a record", file->path);
    cvy_text_free(body);
    cvy_text_free(&event);
    cvy_text_free(&record);
    return status;
}

static cvy_status append_version(struct cvy_event_file *file) {
    struct cvy_text version = {0};
    cvy_text_printf(&version, "brain.Event:2");
    return append(file, 0, 3, &version);
}

/* TensorBoard forgets what it read of this step and later ones. */
static cvy_status append_start(struct cvy_event_file *file, int64_t step) {
    struct cvy_text session_log = {0};
    put_key(&session_log, 1, WIRE_VARINT);
    put_varint(&session_log, 1);
    return append(file, step, 7, &session_log);
}

/* Bytes of the whole records that the file begins with. */
static off_t whole_bytes(int fd) {
    off_t end = lseek(fd, 0, SEEK_END), at = 0;
    uint8_t header[HEADER];
    while (pread(fd, header, HEADER, at) == HEADER) {
        uint64_t n = get_little(header, 8);
        if (get_little(header + 8, 4) != cvy_masked_crc(header, 8) || n > LONGEST)
            break;
        off_t next = at + HEADER + (off_t)n + FOOTER;
        if (next > end)
            break;
        at = next;
    }
    return at;
}

static cvy_status begin(struct cvy_event_file *file, int64_t update) {
    off_t n = whole_bytes(file->fd);
    if (ftruncate(file->fd, n) != 0)
        return CVY_FAIL(CVY_ERR_IO, "%s: cannot be written: %s", file->path, strerror(errno));
    if (n == 0)
        CVY_TRY(append_version(file));
    return n > 0 && update > 0 ? append_start(file, update) : CVY_OK;
}

cvy_status cvy_event_file_open(const char *path, bool is_new, int64_t update, struct cvy_event_file **out) {
    struct cvy_event_file *file;
    CVY_TRY(CVY_ALLOC(file, 1));
    file->path = strdup(path);
    file->fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | (is_new ? O_TRUNC : 0), 0666);
    cvy_status status = CVY_OK;
    if (!file->path || file->fd < 0)
        status = CVY_FAIL(CVY_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    else
        status = begin(file, update);
    if (status == CVY_OK)
        *out = file;
    else
        cvy_event_file_close(file);
    return status;
}

void cvy_event_file_close(struct cvy_event_file *file) {
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    free(file->path);
    free(file);
}

/* ---- what is told -------------------------------------------------------------------------------------- */

cvy_status cvy_event_file_step(struct cvy_event_file *file, const struct cvy_step_report *r) {
    struct cvy_text summary = {0};
    double n = r->metrics.n > 0 ? (double)r->metrics.n : 1;
    put_scalar(&summary, "step/loss", r->metrics.loss);
    put_scalar(&summary, "step/top1", 100.0 * (double)r->metrics.top1 / n);
    put_scalar(&summary, "step/lr", r->lr);
    put_scalar(&summary, "step/images_per_s", r->images_per_s);
    if (r->is_clipped)
        put_scalar(&summary, "step/grad_norm", r->metrics.grad_norm);
    if (r->scale.scale > 0)
        put_scalar(&summary, "step/loss_scale", r->scale.scale);
    return append(file, r->epoch * r->n_steps + r->step, 5, &summary);
}

cvy_status cvy_event_file_epoch(struct cvy_event_file *file, const struct cvy_epoch_report *r,
                                int64_t n_steps) {
    struct cvy_text summary = {0};
    put_scalar(&summary, "train/loss", cvy_tally_loss(&r->train));
    put_scalar(&summary, "train/top1", cvy_tally_top1(&r->train));
    put_scalar(&summary, "train/top5", cvy_tally_top5(&r->train));
    put_scalar(&summary, "val/loss", cvy_tally_loss(&r->val));
    put_scalar(&summary, "val/top1", cvy_tally_top1(&r->val));
    put_scalar(&summary, "val/top5", cvy_tally_top5(&r->val));
    if (r->ema.n > 0) {
        put_scalar(&summary, "ema/loss", cvy_tally_loss(&r->ema));
        put_scalar(&summary, "ema/top1", cvy_tally_top1(&r->ema));
        put_scalar(&summary, "ema/top5", cvy_tally_top5(&r->ema));
    }
    put_scalar(&summary, "epoch", (double)r->epoch);
    if (r->train_s > 0)
        put_scalar(&summary, "train/images_per_s", (double)r->train.n / r->train_s);
    return append(file, (r->epoch + 1) * n_steps - 1, 5, &summary);
}
